//! Unit tests of `feed.rs`.

use super::*;
use serde_json::Value;
use std::collections::HashMap;
use trtserver_base::stats::{BatchExecution, VersionStats};
use trtserver_models::{Model, ModelVersion};

fn model(name: &str, stats: &Arc<VersionStats>) -> (String, Arc<Model>) {
    let versions = BTreeMap::from([(1, ModelVersion::new(1, Arc::clone(stats)))]);
    (name.to_owned(), Model::new(name, None, None, versions))
}

fn sources() -> StatusSources {
    let args = ["trtserver", "--model-store=/m"].map(std::ffi::OsString::from);
    let settings = trtserver_config::from_args(args, &|_| None, "1").unwrap().settings;
    StatusSources { models: Arc::default(), state: Arc::default(), settings: Arc::new(settings) }
}

/// A snapshot now, however young the last one is; its `full` and `changed`.
fn snapshot(feed: &StatusFeed, sources: &StatusSources) -> (Value, Value) {
    if let Some(last) = &mut feed.readings.lock().last {
        last.at -= Duration::from_secs(1);
    }
    let snapshot = feed.current(sources).unwrap();
    let read = |json: &Bytes| serde_json::from_slice(json).unwrap();
    (read(&snapshot.full), read(&snapshot.changed))
}

fn names(status: &Value) -> Vec<&str> {
    let models = status["models"].as_array().unwrap();
    models.iter().map(|model| model["name"].as_str().unwrap()).collect()
}

#[test]
fn a_young_snapshot_is_shared() {
    let (feed, sources) = (StatusFeed::default(), sources());
    let first = feed.current(&sources).unwrap();
    assert!(Arc::ptr_eq(&first, &feed.current(&sources).unwrap()));
    assert_eq!(snapshot(&feed, &sources).0["sequence"], 2);
}

#[test]
fn changes_are_told_apart() {
    let (feed, sources) = (StatusFeed::default(), sources());
    let stats = Arc::new(VersionStats::new(1));
    let models = [model("<script>", &stats), model("b", &Arc::new(VersionStats::new(1)))];
    sources.models.replace_all(HashMap::from(models.clone()));
    let (full, _) = snapshot(&feed, &sources);
    assert_eq!(names(&full), ["<script>", "b"]);
    assert_eq!(full["models"][0]["state"], "LOADING");
    let (_, changed) = snapshot(&feed, &sources);
    assert_eq!((names(&changed), &changed["removed"]), (vec![], &Value::from(Vec::<u8>::new())));
    for _ in 0..3 {
        let execution = BatchExecution::new(0, 1, 2, 1_000_000, &Default::default());
        stats.success(2, 0, 0, 3_000_000, &execution);
    }
    let (full, changed) = snapshot(&feed, &sources);
    assert_eq!(names(&changed), ["<script>"]);
    assert_eq!(full["models"][0], changed["models"][0]);
    let recent = &changed["models"][0]["recent"];
    assert_eq!((&recent["requests"], &recent["rows"]), (&Value::from(3), &Value::from(6)));
    assert!(recent["p50_us"].as_f64().unwrap() > 1000.0, "{recent}");
    assert!(full["models"][1].get("recent").is_none());
    sources.models.replace_all(HashMap::from([models[1].clone()]));
    let (full, changed) = snapshot(&feed, &sources);
    assert_eq!(names(&full), ["b"]);
    assert_eq!(changed["removed"], serde_json::json!([["<script>", "1"]]));
}

#[test]
fn the_last_viewer_takes_the_readings_along() {
    let (feed, sources) = (Arc::new(StatusFeed::default()), sources());
    let (one, two) = (feed.watch(), feed.watch());
    assert_eq!(snapshot(&feed, &sources).0["server"]["viewers"], 2);
    drop(one);
    assert!(feed.readings.lock().last.is_some());
    drop(two);
    assert!(feed.readings.lock().last.is_none());
    // Streams that began before know lower numbers.
    assert_eq!(snapshot(&feed, &sources).0["sequence"], 2);
}
