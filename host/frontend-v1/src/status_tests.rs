//! Unit tests of `status.rs`.

use super::*;
use crate::testing;
use trtserver_base::state::ServerPhase;
use trtserver_base::stats::FailureReason;
use trtserver_proto::text;

fn shown(mut status: ServerStatus) -> String {
    assert!(status.uptime_ns > 0);
    status.uptime_ns = 5;
    for model in status.model_status.values_mut() {
        for version in model.version_status.values_mut() {
            if version.last_inference_timestamp_milliseconds > 0 {
                version.last_inference_timestamp_milliseconds = 99;
            }
        }
    }
    text::print(&status)
}

#[test]
fn status_text_of_server_and_models() {
    let ctx = testing::context("--id=me");
    ctx.endpoints.status.add(10);
    ctx.endpoints.status.add(20);
    ctx.endpoints.health.add(3);
    let served = ctx.models.find("m", None).unwrap();
    served.stats.failure(0, 7, FailureReason::Other, false);
    let model = "model_status {\n  key: \"m\"\n  value {\n    config {\n      name: \"m\"\n    }\n    \
                 version_status {\n      key: 3\n      value {\n        ready_state: MODEL_READY\n        \
                 infer_stats {\n          key: 0\n          value {\n            failed {\n              \
                 count: 1\n              total_time_ns: 7\n            }\n          }\n        }\n        \
                 last_inference_timestamp_milliseconds: 99\n      }\n    }\n    version_status {\n      \
                 key: 4\n      value {\n        ready_state: MODEL_UNAVAILABLE\n        \
                 ready_state_reason {\n          message: \"no file\"\n        }\n      }\n    }\n  }\n}\n";
    let refused = "model_status {\n  key: \"refused\"\n  value {\n    config {\n      name: \"refused\"\n    \
                   }\n  }\n}\n";
    let head = format!("id: \"me\"\nversion: \"{}\"\nuptime_ns: 5\n", ctx.settings.server_version);
    let stats = "status_stats {\n  success {\n    count: 2\n    total_time_ns: 30\n  }\n}\n";
    let health = "health_stats {\n  success {\n    count: 1\n    total_time_ns: 3\n  }\n}\n";
    let ready = "ready_state: SERVER_READY\n";
    let all = shown(report_status(&ctx, None).unwrap());
    let simple = "model_status {\n  key: \"simple\"";
    let (before, after) = all.split_once(simple).unwrap();
    assert_eq!(before, format!("{head}{model}{refused}"));
    assert!(after.ends_with(&format!("}}\n{stats}{ready}{health}")), "{after}");
    assert_eq!(shown(report_status(&ctx, Some("m")).unwrap()), format!("{head}{model}{ready}"));
}

#[test]
fn warmup_statistics_only_after_warmup() {
    let ctx = testing::context("");
    let served = ctx.models.find("m", None).unwrap();
    served.stats.warmed_up([("s".into(), DurationSum { count: 2, ns: 9 })].into());
    let all = shown(report_status(&ctx, None).unwrap());
    let want = "warmup_stats {\n          key: \"s\"\n          value {\n            count: 2\n            \
                total_time_ns: 9\n";
    assert!(all.contains(want), "{all}");
    assert_eq!(all.matches("warmup_stats").count(), 1);
}

#[test]
fn unknown_model_and_draining_server_are_refused() {
    let ctx = testing::context("");
    let error = report_status(&ctx, Some("a/b")).unwrap_err();
    assert_eq!(error.message, "no status available for unknown model 'a/b'");
    ctx.state.set_phase(ServerPhase::Exiting);
    assert_eq!(report_status(&ctx, None).unwrap_err(), Error::unavailable("Server exiting"));
    assert_eq!(report_server_only(&ctx).ready_state, 3);
}
