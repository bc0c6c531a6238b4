//! `GET /v2/trtserver/loads`, an extension of this server: loads in progress, and how long the steps of finished ones took.

use super::json::write::{Object, array};
use super::management_json::{nested, object};
use std::sync::Arc;
use std::time::Duration;
use trtserver_models::lifecycle::{LoadProgress, LoadTimes};
use trtserver_wire::context::Context;

/// The response, as JSON.
pub fn respond(ctx: &Context) -> Vec<u8> {
    let models = ctx.models.all();
    let versions = models.values().flat_map(|model| {
        model
            .versions
            .values()
            .filter_map(move |version| Some((model, version, version.load_times()?)))
    });
    let versions: Vec<_> = versions.collect();
    object(|o| {
        array(o.key("loading"), &ctx.models.loads.list(), |out, load: &Arc<LoadProgress>| {
            nested(out, |o| {
                o.string("name", &load.model);
                o.string("version", &load.version.to_string());
                o.plain("elapsed_ms", milliseconds(load.elapsed()));
                o.string("stage", &load.stage());
                if let Some((stage, permille)) = load.reported() {
                    o.string("reported", &stage);
                    o.plain("permille", permille);
                }
            });
        });
        array(o.key("loads"), &versions, |out, (model, version, times)| {
            nested(out, |o| {
                o.string("name", &model.name);
                o.string("version", &version.number.to_string());
                o.string("state", version.status().0.name());
                steps(o, times);
            });
        });
    })
}

fn steps(o: &mut Object<'_>, times: &LoadTimes) {
    o.plain("fetch_ms", milliseconds(times.fetch));
    o.plain("parse_ms", milliseconds(times.parse));
    o.plain("open_ms", milliseconds(times.open));
    o.plain("warm_ms", milliseconds(times.warm));
    o.plain("total_ms", milliseconds(times.total()));
}

/// Milliseconds with three digits after the point.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
