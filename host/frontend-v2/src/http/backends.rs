//! `GET /v2/trtserver/backends`, an extension of this server: the backend versions and the models that use them.

use super::json::write::{array, string};
use super::management_json::{nested, object};
use std::path::PathBuf;
use trtserver_models::backends::BackendStatus;
use trtserver_wire::context::Context;

/// The response, as JSON.
pub fn respond(ctx: &Context) -> Vec<u8> {
    let all = ctx.models.backends();
    object(|o| {
        array(o.key("backends"), &all.usable, backend);
        array(o.key("unusable"), &all.unusable, |out, (file, reason): &(PathBuf, String)| {
            nested(out, |o| {
                o.string("file", &file.to_string_lossy());
                o.string("reason", reason);
            });
        });
    })
}

fn isolation(isolated: bool) -> &'static str {
    if isolated { "process" } else { "none" }
}

fn backend(out: &mut Vec<u8>, b: &BackendStatus) {
    nested(out, |o| {
        o.string("name", &b.facts.name);
        o.string("version", &b.facts.version);
        o.string("file", &b.file.path().to_string_lossy());
        if let Some(adapted) = &b.file.adapted {
            o.string("adapter", &adapted.adapter);
        }
        o.plain("installed", b.installed);
        o.plain("default", b.default);
        // Unknown for a library that was opened by child processes only.
        if let (1.., minor) = b.facts.abi {
            o.string("interface", &format!("{}.{minor}", b.facts.abi.0));
        }
        if !b.facts.runtime.is_empty() {
            o.string("runtime", &b.facts.runtime);
        }
        array(o.key("platforms"), &b.facts.platforms, |out, (platform, _)| {
            string(out, platform.as_bytes());
        });
        o.string("isolation", isolation(b.isolated));
        array(o.key("models"), &b.models, |out, (name, version, isolated)| {
            nested(out, |o| {
                o.string("name", name);
                o.string("version", &version.to_string());
                o.string("isolation", isolation(*isolated));
            });
        });
    });
}
