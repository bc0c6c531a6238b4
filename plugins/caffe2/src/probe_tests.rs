//! Unit tests of `probe.rs`, through the interface.

use crate::Caffe2;
use trtserver_onnx_engine::Engine;
use trtserver_plugin_testkit::{self as testkit, Session};

#[test]
fn two_nets_of_one_name_are_recognised() {
    let _session = Session::start();
    let table = testkit::table::<Engine<Caffe2>>();
    // Files, then the recognised entry or the reason.
    for (files, expected) in [
        (&["model.netdef", "init_model.netdef"][..], Ok("model.netdef")),
        (&["init_squeeze.netdef", "squeeze.netdef", ".keep"], Ok("squeeze.netdef")),
        (
            &["model.netdef"],
            Err("expected two files, 'model.netdef' and 'init_model.netdef', found 'model.netdef'"),
        ),
        (&["a.netdef", "init_b.netdef"], Err("found 'a.netdef', 'init_b.netdef'")),
        (&["model.netdef", "init_model.netdef", "model.onnx"], Err("found 'init_model.netdef', ")),
        (&["model.bin", "init_model.bin"], Err("found 'init_model.bin', 'model.bin'")),
        (&[], Err("found none")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        files.iter().for_each(|file| std::fs::write(dir.path().join(file), "").unwrap());
        match (testkit::probe(table, "caffe2_netdef", dir.path()), expected) {
            (Ok(found), expected) => {
                assert_eq!(found.as_deref().ok_or("none"), expected, "{files:?}");
            }
            (Err(e), Err(reason)) => assert!(e.text.contains(reason), "{files:?}: {}", e.text),
            (Err(e), Ok(_)) => panic!("{files:?}: {}", e.text),
        }
    }
}
