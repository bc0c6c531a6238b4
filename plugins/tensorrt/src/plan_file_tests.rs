//! Unit tests of `plan_file.rs`.

use super::*;
use crate::backend::TensorRt;
use trtserver_model_files::testing::HostileModel;
use trtserver_plugin_testkit::{Backend, ModelSpec, Session, table};

fn header(format: u32, version: [u8; 4]) -> Vec<u8> {
    let mut bytes = TAG.to_le_bytes().to_vec();
    bytes.extend(format.to_le_bytes());
    bytes.resize(24, 0);
    bytes.extend(version);
    bytes
}

#[test]
fn header_gives_the_version_of_the_builder() {
    let built = parse_header(&header(0, [10, 16, 1, 11])).expect("a plan");
    assert_eq!(built, Header::Built(Version::new(10, 16, 1)));
    assert_eq!(built.major(), Some(10));
}

#[test]
fn old_plan_is_of_major_8() {
    let old = parse_header(b"ptrt then whatever the engine holds").expect("a plan");
    assert_eq!(old.major(), Some(8));
}

#[test]
fn plan_of_a_newer_format_has_no_version() {
    let newer = parse_header(&header(7, [0; 4])).expect("a plan");
    assert_eq!(newer, Header::Unknown { format: Some(7) });
    assert_eq!(newer.major(), None);
}

#[test]
fn other_files_are_refused_with_what_they_are() {
    let refusal = |bytes: &[u8]| parse_header(bytes).expect_err("no plan");
    assert!(refusal(b"").contains("empty"));
    assert!(refusal(&header(0, [10; 4])[..20]).contains("truncated: 20 bytes"));
    assert!(refusal(b"ftr").contains("text"));
    assert!(refusal(b"name: \"a model\"\n").contains("is text"));
    assert!(refusal(b"trtf\0\0\0\0........................").contains("byte order"));
    assert!(refusal(&[0x08, 0x07, 0x12, 0x01, 0x00]).contains("ONNX"));
    assert!(refusal(&[0xff; 28]).contains("[ff, ff, ff, ff]"));
    assert!(refusal(&[0xff; 3]).contains("truncated"));
}

#[test]
fn missing_file_is_named() {
    let fault = read_header(Path::new("/no/such/model.plan")).expect_err("no file");
    assert!(fault.text.contains("/no/such/model.plan"), "{fault}");
}

#[test]
fn files_outside_are_refused() {
    let _session = Session::start();
    let model = HostileModel::new(&["1"]);
    let (dir, version_dir) = (model.model(), model.model().join("1"));
    // No library can be opened, so a model whose file is found fails for that reason.
    let settings = [("library", "/nowhere/library.so")];
    let backend = Backend::open(table::<TensorRt>(), "tensorrt", "/nowhere", &settings).unwrap();
    let spec = ModelSpec {
        dir: dir.display().to_string(),
        version_dir: version_dir.display().to_string(),
        ..ModelSpec::new("M")
    };
    let open = |file: &str| {
        let spec = ModelSpec { file: file.to_owned(), ..spec.clone() };
        backend.open_model(&spec).err().map(|failure| failure.text).unwrap_or_default()
    };
    assert!(!HostileModel::is_refusal(&open("own")));
    for name in model.names_of_secret().iter().filter(|name| !name.contains('\0')) {
        let text = open(name);
        assert!(HostileModel::is_refusal(&text) && text.contains("'M'"), "{name}: {text}");
    }
    for name in model.names_of_secret().iter().filter(|name| !name.contains('\0')) {
        let spec = ModelSpec { file: "own".to_owned(), ..spec.clone() }.parameter("weights", name);
        let text = backend.open_model(&spec).err().unwrap().text;
        assert!(HostileModel::is_refusal(&text), "{name}: {text}");
    }
}
