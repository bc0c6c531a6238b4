//! Unit tests of `files.rs`.

use super::*;
use prost::Message;
use trtserver_model_files::testing::HostileModel;
use trtserver_onnx_engine::Engine;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_testkit::{Backend, ModelSpec, Session, table};

#[test]
fn missing_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let find = |name: &str| NetFiles::find("M", name, |name| Ok(dir.path().join(name)));
    let fault = find("").unwrap_err();
    assert_eq!(fault.code, code::INTERNAL);
    assert!(
        fault.text.starts_with("unable to find NetDef model 'model.netdef' for M: there is no")
    );
    std::fs::write(dir.path().join("a.netdef"), "").unwrap();
    let fault = find("a.netdef").unwrap_err();
    let expected = "unable to find NetDef initialization model 'init_a.netdef' for M: there is no";
    assert!(fault.text.starts_with(expected), "{fault}");
    std::fs::write(dir.path().join("init_a.netdef"), "").unwrap();
    assert_eq!(find("a.netdef").unwrap().init, dir.path().join("init_a.netdef"));
}

#[test]
fn the_damaged_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let net = NetDef { name: Some("net".into()), ..NetDef::default() }.encode_to_vec();
    std::fs::write(dir.path().join("model.netdef"), &net).unwrap();
    std::fs::write(dir.path().join("init_model.netdef"), &net[..3]).unwrap();
    let files = NetFiles::find("M", "", |name| Ok(dir.path().join(name))).unwrap();
    let text = files.read("M").unwrap_err().text;
    assert!(text.contains("/init_model.netdef: it is not a binary NetDef"), "{text}");
    let huge = std::fs::File::create(dir.path().join("init_model.netdef")).unwrap();
    huge.set_len(3 << 30).unwrap();
    let text = files.read("M").unwrap_err().text;
    assert!(text.contains("it has 3221225472 bytes, a NetDef at most 2147483647"), "{text}");
}

#[test]
fn files_outside_are_refused() {
    let _session = Session::start();
    let model = HostileModel::new(&["1"]);
    let (dir, version_dir) = (model.model(), model.model().join("1"));
    // No library can be opened, so a model whose file is found fails for that reason.
    let settings = [("library", "/nowhere/library.so")];
    let backend =
        Backend::open(table::<Engine<crate::Caffe2>>(), "caffe2", "/nowhere", &settings).unwrap();
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
    // The other net, too.
    std::fs::write(version_dir.join("net"), "").unwrap();
    std::os::unix::fs::symlink(model.secret(), version_dir.join("init_net")).unwrap();
    assert!(HostileModel::is_refusal(&open("net")));
}
