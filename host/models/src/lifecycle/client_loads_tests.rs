//! Unit tests of `client_loads.rs`, and of everything in the host that opens a file which a
//! configuration names.

use super::super::super::labels::OutputLabels;
use super::super::super::load_limits::LoadMemory;
use super::super::super::scheduling::SchedulingPlan;
use super::super::super::warmup;
use super::super::LoadOverrides;
use super::*;
use proptest::prelude::*;
use std::fs;
use trtserver_model_files::stays_inside;
use trtserver_model_files::testing::{HostileModel, OWN};
use trtserver_proto::v2::ModelOutput;
use trtserver_request::ModelSignature;

/// The name as a text of a configuration in protobuf text.
fn quoted(name: &str) -> String {
    let escaped: String = name.bytes().map(|byte| format!("\\{byte:03o}")).collect();
    format!("'{escaped}'")
}

fn config_of(text: &str) -> ModelConfig {
    let head = "name: 'm' input { name: 'I' data_type: TYPE_UINT8 dims: 7 } \
                output { name: 'O' data_type: TYPE_UINT8 dims: 7 }";
    trtserver_proto::text::parse(&format!("{head} {text}")).unwrap()
}

/// What reads a file of the model: its directory, and what it has read of the file `name`.
type Reader = fn(&FilePlaces, &str) -> Option<Vec<u8>>;

fn label_of(places: &FilePlaces, name: &str) -> Option<Vec<u8>> {
    let output =
        ModelOutput { name: "O".into(), label_filename: name.into(), ..Default::default() };
    let labels = OutputLabels::load(places, &[output], &mut LoadMemory::new(1 << 20)).ok()?;
    labels.get("O", 0).map(|label| [label.as_bytes(), b"\n"].concat())
}

fn warmup_of(places: &FilePlaces, name: &str) -> Option<Vec<u8>> {
    let file = format!("data_type: TYPE_UINT8 dims: 7 input_data_file: {}", quoted(name));
    let config = config_of(&format!(
        "model_warmup {{ name: 's' batch_size: 1 inputs {{ key: 'I' value {{ {file} }} }} }}"
    ));
    let signature = ModelSignature::new(&config, |_| None).unwrap();
    let samples = warmup::build_samples(&config, &signature, places, &mut LoadMemory::new(1 << 20));
    samples.ok().map(|samples| samples[0].inputs[0].data.payload().to_vec())
}

fn state_of(places: &FilePlaces, name: &str) -> Option<Vec<u8>> {
    let initial = format!("name: 's' data_type: TYPE_UINT8 dims: 7 data_file: {}", quoted(name));
    let config = config_of(&format!(
        "sequence_batching {{ state {{ input_name: 'i' output_name: 'o' data_type: TYPE_UINT8 dims: 7 \
         initial_state {{ {initial} }} }} }}"
    ));
    let mut signature = ModelSignature::new(&config, |_| None).unwrap();
    let memory = &mut LoadMemory::new(1 << 20);
    SchedulingPlan::new(&config, &mut signature, places, memory).ok()?;
    Some(signature.states[0].initial.data.payload().to_vec())
}

/// As a backend reads it, or creates it.
fn model_file_of(places: &FilePlaces, name: &str) -> Option<Vec<u8>> {
    let dir = places.model_dir().join("1");
    judge_model_file("m", places, &dir, name).ok()?;
    let path = dir.join(name);
    if !path.exists() {
        let _ = fs::write(&path, b"made").and_then(|()| fs::remove_file(&path));
    }
    fs::read(&path).ok()
}

const READERS: [(&str, Reader); 4] = [
    ("label file", label_of),
    ("warm-up file", warmup_of),
    ("initial state", state_of),
    ("model file", model_file_of),
];

#[test]
fn nothing_outside_the_model_is_opened() {
    let model = HostileModel::new(&[".", "1", "warmup", "initial_state"]);
    let places = FilePlaces::new(&model.model(), [model.repository()]);
    for (what, read) in READERS {
        for name in ["own", "sub/own", "far"] {
            assert_eq!(read(&places, name).as_deref(), Some(OWN), "{what} {name}");
        }
        for name in model.names_of_secret() {
            assert_eq!(read(&places, &name), None, "{what} {name:?}");
        }
    }
    proptest!(ProptestConfig::with_cases(1024), |(name in model.names())| {
        for (what, read) in READERS {
            let found = read(&places, &name);
            prop_assert!(found.is_none_or(|bytes| bytes == OWN), "{what} {name:?}");
            prop_assert!(model.is_untouched(), "{what} {name:?}");
        }
    });
}

#[test]
fn model_directories_are_judged_with_their_contents() {
    let model = HostileModel::new(&["1"]);
    let places = FilePlaces::new(&model.model(), [model.repository()]);
    let dir = model.model().join("1");
    assert!(judge_model_file("m", &places, &dir, "sub").is_ok());
    std::os::unix::fs::symlink(model.secret(), dir.join("sub/variables")).unwrap();
    let text = judge_model_file("m", &places, &dir, "sub").unwrap_err().message;
    assert!(text.starts_with("model 'm': model file '") && text.contains("leads to"), "{text}");
    // The version directory itself may hold other links.
    assert!(judge_model_file("m", &places, &dir, "").is_ok());
    let entries: Vec<_> = allowed_entries("m", &places, &dir).unwrap();
    let names: Vec<_> = entries.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["far", "own", "sub", "up"]);
}

#[test]
fn uploaded_files_stay_in_their_directory() {
    let model = HostileModel::new(&["1"]);
    proptest!(|(name in model.names())| {
        if LoadOverrides::is_file_path(&name) {
            prop_assert!(stays_inside(&name));
            let files = vec![(name.clone(), bytes::Bytes::from_static(b"x"))];
            let overrides = LoadOverrides { config: None, files };
            if let Ok(dir) = overrides.directory() {
                let written = fs::canonicalize(dir.path().join(&name)).unwrap();
                prop_assert!(written.starts_with(dir.path().canonicalize().unwrap()), "{name:?}");
            }
        }
        prop_assert!(model.is_untouched(), "{name:?}");
    });
}
