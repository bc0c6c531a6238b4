//! `GET /v2/trtserver/loads`, an extension of this server: loads in progress, and how long the
//! steps of finished ones took.

use super::json::write::{Object, write_array};
use super::management_json::{write_nested_object, write_object};
use std::sync::Arc;
use std::time::Duration;
use trtserver_models::lifecycle::{LoadProgress, LoadTimes};
use trtserver_wire::context::FrontendContext;

/// The response, as JSON.
pub fn load_progress_json(ctx: &FrontendContext) -> Vec<u8> {
    let models = ctx.models.all();
    let versions = models.values().flat_map(|model| {
        model
            .versions
            .values()
            .filter_map(move |version| Some((model, version, version.load_times()?)))
    });
    let versions: Vec<_> = versions.collect();
    write_object(|o| {
        write_array(o.key("loading"), &ctx.models.loads.list(), |out, load: &Arc<LoadProgress>| {
            write_nested_object(out, |o| {
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
        write_array(o.key("loads"), &versions, |out, (model, version, times)| {
            write_nested_object(out, |o| {
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
