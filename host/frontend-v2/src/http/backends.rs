//! `GET /v2/trtserver/backends`, an extension of this server: the backend versions and the models
//! that use them.

use super::json::write::{write_array, write_string};
use super::management_json::{write_nested_object, write_object};
use std::path::PathBuf;
use trtserver_models::backends::BackendStatus;
use trtserver_wire::context::FrontendContext;

/// The response, as JSON.
pub fn backends_json(ctx: &FrontendContext) -> Vec<u8> {
    let all = ctx.models.backends();
    write_object(|o| {
        write_array(o.key("backends"), &all.usable, backend);
        write_array(o.key("unusable"), &all.unusable, |out, (file, reason): &(PathBuf, String)| {
            write_nested_object(out, |o| {
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
    write_nested_object(out, |o| {
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
        write_array(o.key("platforms"), &b.facts.platforms, |out, (platform, _)| {
            write_string(out, platform.as_bytes());
        });
        o.string("isolation", isolation(b.isolated));
        write_array(o.key("models"), &b.models, |out, (name, version, isolated)| {
            write_nested_object(out, |o| {
                o.string("name", name);
                o.string("version", &version.to_string());
                o.string("isolation", isolation(*isolated));
            });
        });
    });
}
