//! Unit tests of `files.rs`.

use super::*;
use prost::Message;
use trtserver_plugin_api::abi::types::code;

#[test]
fn missing_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let find = |name: &str| Files::find("M", dir.path(), name);
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
    let files = Files::find("M", dir.path(), "").unwrap();
    let text = files.read("M").unwrap_err().text;
    assert!(text.contains("/init_model.netdef: it is no binary NetDef"), "{text}");
    let huge = std::fs::File::create(dir.path().join("init_model.netdef")).unwrap();
    huge.set_len(3 << 30).unwrap();
    let text = files.read("M").unwrap_err().text;
    assert!(text.contains("it has 3221225472 bytes, a NetDef at most 2147483647"), "{text}");
}
