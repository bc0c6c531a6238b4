//! Unit tests of `session_entries.rs`.

use super::*;
use std::fs;
use trtserver_model_files::testing::HostileModel;

fn read_in(
    model: &HostileModel,
    settings: &[(&str, &str)],
    params: &[(&str, &str)],
) -> Result<Vec<(String, String)>, PluginFault> {
    let places = FilePlaces::new(&model.model(), [model.repository()]);
    let version = model.model().join("1");
    read_entries(settings.iter().copied(), params.iter().copied(), ("M", &places, &version))
}

fn value<'a>(entries: &'a [(String, String)], key: &str) -> Vec<&'a str> {
    entries.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str()).collect()
}

#[test]
fn table_is_sorted_and_without_duplicates() {
    assert!(KNOWN.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[1].0.starts_with(PREFIX)));
}

#[test]
fn models_set_what_names_no_file() {
    let model = HostileModel::new(&["1"]);
    const SPIN: &str = "session.intra_op.allow_spinning";
    let plain = read_in(&model, &[("library", "/x")], &[("priority", "high")]).unwrap();
    assert_eq!(value(&plain, SPIN), ["0"]);
    assert_eq!(plain.len(), 2);
    let operator = [(SPIN, "1"), ("session.optimized_model_filepath", "/o"), ("session.new", "2")];
    let set = read_in(&model, &operator, &[]).unwrap();
    assert_eq!(value(&set, SPIN), ["1"]);
    assert_eq!(value(&set, "session.optimized_model_filepath"), ["/o"]);
    assert_eq!(value(&set, "session.new"), ["2"]);
    let both = read_in(&model, &operator, &[(SPIN, "0")]).unwrap();
    assert_eq!(value(&both, SPIN), ["0"]);
}

#[test]
fn files_are_the_operators() {
    let model = HostileModel::new(&["1"]);
    for (key, rule) in KNOWN {
        let set = read_in(&model, &[], &[(key, "x")]);
        match rule {
            EntryRule::Operator(why) => {
                let text = set.unwrap_err().text;
                let way = format!("{why}: --backend-config=onnxruntime,{key}=VALUE");
                assert!(text.contains(&format!("'{key}'")) && text.ends_with(&way), "{text}");
            }
            _ => assert!(set.is_ok(), "{key}"),
        }
    }
    let unknown = read_in(&model, &[], &[("session.optimised", "1")]).unwrap_err().text;
    assert!(unknown.starts_with("unknown parameter 'session.optimised'; known are: "), "{unknown}");
    assert!(unknown.contains("session.disable_prepacking, "), "{unknown}");
    assert!(!unknown.contains("session.enable_profiling"), "{unknown}");
}

#[test]
fn folder_of_weights_stays_in_the_model() {
    let model = HostileModel::new(&["1"]);
    let version = model.model().join("1");
    let folder = |name: &str| read_in(&model, &[], &[(EXTERNAL_FOLDER, name)]);
    let inside = folder("sub").unwrap();
    assert_eq!(value(&inside, EXTERNAL_FOLDER), [version.join("sub").display().to_string()]);
    for name in model.names_of_secret().iter().map(String::as_str).chain(["/etc", "way", ".."]) {
        let text = folder(name).unwrap_err().text;
        assert!(text.contains(EXTERNAL_FOLDER) && text.contains("'M'"), "{text}");
    }
    proptest::proptest!(|(name in model.names())| {
        if let Ok(entries) = folder(&name) {
            for entry in fs::read_dir(value(&entries, EXTERNAL_FOLDER)[0]).into_iter().flatten() {
                proptest::prop_assert_ne!(entry.unwrap().file_name(), "secret", "{:?}", name);
            }
        }
    });
}

#[test]
fn format_follows_extension_unless_it_is_given() {
    let entries = |format: &str| vec![(LOAD_FORMAT.to_owned(), format.to_owned())];
    for (file, format, onnx) in [
        ("m.onnx", "", true),
        ("m.ort", "", false),
        ("m.ort", "ONNX", true),
        ("m.onnx", "ORT", false),
        ("m", "other", true),
    ] {
        assert_eq!(is_onnx_format(Path::new(file), &entries(format)), onnx, "{file} {format}");
    }
}
