//! Unit tests of `probe.rs`, through the interface.

use crate::backend::TensorFlow;
use crate::{GRAPH_DEF, SAVED_MODEL};
use std::fs;
use trtserver_plugin_testkit::{self as testkit, Session};

#[test]
fn one_saved_model_or_graph_is_recognised() {
    let _session = Session::start();
    let table = testkit::table::<TensorFlow>();
    // Files, then the recognised entry or the reason.
    for (platform, files, expected) in [
        (SAVED_MODEL, &["resnet/saved_model.pb", "labels.txt"][..], Ok("resnet")),
        (SAVED_MODEL, &["resnet/saved_model.pbtxt", "assets/vocab.txt"], Ok("resnet")),
        (
            SAVED_MODEL,
            &["resnet/variables/x", "saved_model.pb"],
            Err("expected a directory with a file 'saved_model.pb' or"),
        ),
        (
            SAVED_MODEL,
            &["a/saved_model.pb", "b/saved_model.pb"],
            Err("expected one SavedModel directory, found 'a', 'b'"),
        ),
        (SAVED_MODEL, &[".old/saved_model.pb"], Err("expected a directory")),
        (GRAPH_DEF, &["model.graphdef", ".keep", "notes/readme"], Ok("model.graphdef")),
        (
            GRAPH_DEF,
            &["frozen.pb"],
            Err("expected 'model.graphdef' as the only file, found 'frozen.pb'"),
        ),
        (GRAPH_DEF, &["model.graphdef", "model.onnx"], Err("found 'model.graphdef', 'model.onnx'")),
        (GRAPH_DEF, &[], Err("expected the file 'model.graphdef'")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        match (testkit::probe(table, platform, dir.path()), expected) {
            (Ok(found), expected) => {
                assert_eq!(found.as_deref().ok_or("none"), expected, "{files:?}")
            }
            (Err(e), Err(reason)) => assert!(e.text.contains(reason), "{files:?}: {}", e.text),
            (Err(e), Ok(_)) => panic!("{files:?}: {}", e.text),
        }
    }
}
