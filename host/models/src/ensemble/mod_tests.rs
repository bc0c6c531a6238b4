//! Unit tests of ensembles against the models of their steps: loaded, failed, missing, mismatched,
//! unloaded.

use super::{EnsembleBuilder, step_plans};
use crate::testing::served_by;
use crate::{LookupError, Model, ModelTable, ModelVersion, OpenVersion, VersionState};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use trtserver_base::stats::VersionStats;
use trtserver_base::timer::DeadlineTimer;
use trtserver_proto::v2::ModelConfig;
use trtserver_request::ModelSignature;
use trtserver_request::class_labels::ClassLabels;
use trtserver_scheduler::{RequestQueue, SchedulingPolicy};

fn parse(text: &str) -> Arc<ModelConfig> {
    Arc::new(trtserver_proto::text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}")))
}

/// TestVersion of a model version.
enum TestVersion {
    Ready(i64),
    Failed(i64, &'static str),
}
use TestVersion::{Failed, Ready};

/// A model whose versions have a queue but no instance.
fn model(config: &str, states: &[TestVersion]) -> Arc<Model> {
    let config = parse(config);
    let version = |state: &TestVersion| {
        let (Ready(number) | Failed(number, _)) = state;
        (*number, ModelVersion::new(*number, Arc::new(VersionStats::new(1))))
    };
    let versions = states.iter().map(version).collect();
    let model = Model::new(&config.name, Some(Arc::clone(&config)), None, versions);
    let labels = |name: &str| {
        ClassLabels::from_lines("yes\nno".to_owned()).filter(|_| name == "O").map(Into::into)
    };
    let signature = Arc::new(ModelSignature::new(&config, labels).unwrap());
    let policy = || SchedulingPolicy::Dynamic(Default::default());
    for state in states {
        match state {
            Failed(number, why) => {
                model.set_unavailable(&model.versions[number], *why);
            }
            Ready(number) => {
                let version = &model.versions[number];
                let queue =
                    RequestQueue::new(policy(), &signature, 1, false, DeadlineTimer::leak());
                let served = served_by(queue, &config, &signature, version, None);
                model.set_ready(version, served);
            }
        }
    }
    model
}

fn table_of(models: Vec<Arc<Model>>) -> Arc<ModelTable> {
    let table = Arc::new(ModelTable::default());
    let models: HashMap<_, _> = models.into_iter().map(|m| (m.name.to_string(), m)).collect();
    table.replace_all(models);
    table
}

fn builder(config: &str, models: &Arc<ModelTable>) -> EnsembleBuilder {
    let config = parse(config);
    let signature = Arc::new(ModelSignature::new(&config, |_| None).unwrap());
    EnsembleBuilder::new(&config.name, &config, signature, models)
}

/// `a` and `b`, each from I to O.
const A: &str = "name: 'a' max_batch_size: 8 input { name: 'I' data_type: TYPE_FP32 dims: 2 } \
                 output { name: 'O' data_type: TYPE_FP32 dims: 2 }";
const B: &str = "name: 'b' max_batch_size: 8 input { name: 'I' data_type: TYPE_FP32 dims: 2 } \
                 output { name: 'O' data_type: TYPE_FP32 dims: 2 }";
/// From `in` through `t` to `out`.
const E: &str = "name: 'e' platform: 'ensemble' max_batch_size: 8 \
                 input { name: 'in' data_type: TYPE_FP32 dims: 2 } \
                 output { name: 'out' data_type: TYPE_FP32 dims: 2 } ensemble_scheduling { \
                 step { model_name: 'a' model_version: -1 input_map { key: 'I' value: 'in' } \
                 output_map { key: 'O' value: 't' } } \
                 step { model_name: 'b' model_version: -1 input_map { key: 'I' value: 't' } \
                 output_map { key: 'O' value: 'out' } } }";

/// The error of opening `E` after `changes`: model, text, replacement.
fn open_error(changes: &[(&str, &str, &str)]) -> String {
    let text = |name: &str, text: &str| {
        changes.iter().filter(|change| change.0 == name).fold(
            text.to_owned(),
            |text, (_, old, new)| {
                assert!(text.contains(old), "{old} is not in {text}");
                text.replacen(old, new, 1)
            },
        )
    };
    let models =
        table_of(vec![model(&text("a", A), &[Ready(1)]), model(&text("b", B), &[Ready(1)])]);
    let opened =
        builder(&text("e", E), &models).open(&ModelVersion::new(1, Arc::new(VersionStats::new(1))));
    opened.map(|_| String::new()).unwrap_or_else(|e| e.message)
}

#[test]
fn open_checks_tensors_against_steps() {
    let more = "output { name: 'O'";
    let input =
        |rest: &str| format!("input {{ name: 'J' data_type: TYPE_FP32 dims: 2 {rest} }} {more}");
    let (required, optional) = (input(""), input("optional: true"));
    type Changes<'a> = &'a [(&'a str, &'a str, &'a str)];
    let rows: &[(Changes<'_>, &str)] = &[
        (&[], ""),
        (&[("b", "dims: 2", "dims: -1")], ""),
        (
            &[(
                "a",
                "name: 'O' data_type: TYPE_FP32 dims: 2",
                "name: 'O' data_type: TYPE_FP32 dims: -1",
            )],
            "",
        ),
        (&[("e", "max_batch_size: 8", "")], ""),
        (&[("e", "max_batch_size: 8", "max_batch_size: 4")], ""),
        (&[("b", more, &optional)], ""),
        // Clients and other steps see `dims`, not the shape after the model's reshape.
        (&[("b", "dims: 2", "dims: 2 reshape { shape: [ 2, 1 ] }")], ""),
        // The batch as an ordinary dimension.
        (
            &[
                ("e", "max_batch_size: 8", ""),
                ("e", "dims: 2", "dims: [ -1, 2 ]"),
                ("e", "dims: 2", "dims: [ -1, 2 ]"),
            ],
            "",
        ),
        (
            &[("b", "max_batch_size: 8", "max_batch_size: 4")],
            "ensemble e allows maximum batch size 8, but it contains model b which only allows maximum batch \
             size to be 4",
        ),
        // A model without batching gets one row, or the batch as an ordinary dimension.
        (&[("a", "max_batch_size: 8", "")], ""),
        (
            &[
                ("a", "max_batch_size: 8", ""),
                ("a", "dims: 2", "dims: [ -1, 2 ]"),
                ("a", "dims: 2", "dims: [ -1, 2 ]"),
            ],
            "",
        ),
        (
            &[("a", "max_batch_size: 8", ""), ("a", "dims: 2", "dims: [ -1, 3 ]")],
            "in ensemble e, ensemble tensor in: inconsistent shape: [-1,2] is inferred from model e while [-1,3] \
             is inferred from model a",
        ),
        (
            &[("e", "key: 'I' value: 't'", "key: 'X' value: 't'")],
            "in ensemble e, ensemble tensor t is mapping to non-existing input X in model b",
        ),
        (
            &[("e", "key: 'O' value: 't'", "key: 'X' value: 't'")],
            "in ensemble e, ensemble tensor t is mapped from non-existing output X in model a",
        ),
        (
            &[("b", more, &required)],
            "in ensemble e, input J in model b is not mapped to any ensemble tensors",
        ),
        (
            &[("a", "TYPE_FP32", "TYPE_INT32")],
            "in ensemble e, ensemble tensor in: inconsistent data type: TYPE_FP32 is inferred from model e while \
             TYPE_INT32 is inferred from model a",
        ),
        (
            &[("b", "TYPE_FP32", "TYPE_FP16")],
            "in ensemble e, ensemble tensor t: inconsistent data type: TYPE_FP32 is inferred from model a while \
             TYPE_FP16 is inferred from model b",
        ),
        (
            &[("b", "dims: 2", "dims: 3")],
            "in ensemble e, ensemble tensor t: inconsistent shape: [-1,2] is inferred from model a while [-1,3] \
             is inferred from model b",
        ),
        (
            &[(
                "b",
                "output { name: 'O' data_type: TYPE_FP32 dims: 2",
                "output { name: 'O' data_type: TYPE_FP32 dims: [ 2, 1 ]",
            )],
            "in ensemble e, ensemble tensor out: inconsistent shape: [-1,2] is inferred from model e while \
             [-1,2,1] is inferred from model b",
        ),
        (
            &[("e", "dims: 2", "dims: 2 optional: true")],
            "in ensemble e, ensemble tensor in is an optional input of the ensemble but input I in model a is \
             required",
        ),
    ];
    for (changes, expected) in rows {
        assert_eq!(open_error(changes), *expected, "{changes:?}");
    }
}

#[test]
fn open_fails_when_a_step_is_not_served() {
    let b = || model(B, &[Ready(1)]);
    let refused = Model::new("a", None, Some("it is nonsense".into()), BTreeMap::new());
    let version = |text: &str| E.replacen("model_version: -1", text, 1);
    let depends = "ensemble 'e' depends on 'a'";
    for (config, models, expected) in [
        (E.to_owned(), vec![model(A, &[Ready(3)]), b()], String::new()),
        (version(""), vec![model(A, &[Ready(3)]), b()], String::new()),
        (version("model_version: 3"), vec![model(A, &[Ready(3)]), b()], String::new()),
        (
            E.to_owned(),
            vec![b()],
            "ensemble e contains models that are not available or ambiguous: a".to_owned(),
        ),
        (E.to_owned(), vec![refused, b()], format!("{depends} which is not valid: it is nonsense")),
        (
            E.to_owned(),
            vec![model(A, &[Failed(1, "no file"), Failed(2, "bad file")]), b()],
            format!(
                "{depends} which has no loaded version: version 1: no file; version 2: bad file"
            ),
        ),
        (
            version("model_version: 2"),
            vec![model(A, &[Ready(1), Failed(2, "bad file")]), b()],
            format!("{depends} whose required version 2 is not loaded"),
        ),
    ] {
        let models = table_of(models);
        let opened =
            builder(&config, &models).open(&ModelVersion::new(1, Arc::new(VersionStats::new(1))));
        assert_eq!(opened.map(|_| String::new()).unwrap_or_else(|e| e.message), expected);
    }
}

/// A table with `a`, `b` and the loaded ensemble `e` of them.
fn with_e() -> (Arc<ModelTable>, Arc<Model>) {
    let models = table_of(vec![model(A, &[Ready(1)]), model(B, &[Ready(1), Ready(2)])]);
    let e = open(&models, E);
    (models, e)
}

/// Opens an ensemble and adds it to the table.
fn open(models: &Arc<ModelTable>, config: &str) -> Arc<Model> {
    let builder = builder(config, models);
    let version = ModelVersion::new(1, Arc::new(VersionStats::new(1)));
    let table = BTreeMap::from([(1, Arc::clone(&version))]);
    let served = builder.open(&version).unwrap();
    let model = Model::new(&served.name, Some(Arc::clone(&served.config)), None, table);
    version.set_dependencies(Arc::clone(&builder.dependencies));
    model.set_ready(&version, served);
    let mut table: HashMap<_, _> = models.all().into_iter().collect();
    table.insert(model.name.to_string(), Arc::clone(&model));
    models.replace_all(table);
    model
}

#[test]
fn ensemble_is_ready_only_while_its_steps_are() {
    let (models, e) = with_e();
    // An ensemble of an ensemble.
    let outer = E.replacen("'e'", "'outer'", 1).replacen("'a'", "'e'", 1);
    let outer = outer.replacen("key: 'I'", "key: 'in'", 1).replacen("key: 'O'", "key: 'out'", 1);
    let outer = open(&models, &outer);
    assert!(models.all_ready(&[]));
    let unload = |name: &str, version: i64| {
        let model = models.get(name).unwrap();
        let served = model.versions[&version].served().unwrap();
        model.set_unavailable(&model.versions[&version], "unloaded");
        (model, served)
    };
    let held = models.find("outer", None).unwrap();
    // A step without a version is served by any version.
    unload("b", 2);
    assert!(models.find("outer", None).is_ok());
    let (b, served) = unload("b", 1);
    let lost = "ensemble 'e' depends on 'b' which has no loaded version: version 1: unloaded; version 2: unloaded";
    assert_eq!(*e.versions[&1].status(), (VersionState::Unavailable, lost.to_owned()));
    // A version that was unloaded by request does not affect readiness of the server; one that
    // failed does.
    assert!(!e.versions[&1].is_ready() && models.all_ready(&[]));
    b.set_unavailable(&b.versions[&1], "broken");
    assert!(!models.all_ready(&[]));
    b.set_unavailable(&b.versions[&1], "unloaded");
    assert_eq!(models.find("e", None).err(), Some(LookupError::NoReadyVersion("e".into())));
    assert_eq!(models.find("e", Some(1)).err(), Some(LookupError::VersionNotReady("e".into(), 1)));
    assert_eq!(e.ready_versions(), [0i64; 0]);
    let status = outer.versions[&1].status();
    assert!(status.1.starts_with("ensemble 'outer' depends on 'e' which has no loaded version"));
    // The ensemble is ready again when the model of its step is.
    b.set_ready(&b.versions[&1], served);
    assert_eq!(e.versions[&1].status().0, VersionState::Ready);
    assert!(models.find("outer", Some(1)).is_ok());
    // Unloads ensembles too, in any order.
    models.unload_all();
    for model in models.all().values() {
        for version in model.versions.values().filter(|v| v.status().1.is_empty()) {
            assert_eq!(version.status().0, VersionState::Unloading, "{}", model.name);
            assert!(version.served().is_none());
        }
    }
    drop(held);
}

fn labels_of(version: &OpenVersion) -> Option<&str> {
    version.signature.outputs[0].labels.as_ref()?.get(1)
}

#[test]
fn labels_are_those_of_the_step_that_writes_the_output() {
    let (models, _) = with_e();
    let served = models.find("e", None).unwrap();
    assert_eq!(labels_of(&served), Some("no"));
    let outer = E.replacen("'e'", "'outer'", 1).replacen("'b'", "'e'", 1);
    let outer = outer.replacen("key: 'I' value: 't'", "key: 'in' value: 't'", 1);
    open(&models, &outer.replacen("key: 'O' value: 'out'", "key: 'out' value: 'out'", 1));
    let served = models.find("outer", None).unwrap();
    assert_eq!(labels_of(&served), Some("no"));
}

#[test]
fn models_without_ensemble_scheduling_have_no_steps() {
    assert!(step_plans(&parse(A)).is_empty());
    assert_eq!(step_plans(&parse(E)).len(), 2);
}
