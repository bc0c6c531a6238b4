//! Unit tests of `probe.rs`.

use super::*;

#[test]
fn own_files_are_recognised() {
    for (files, expected) in [
        (&[][..], Ok(None)),
        (&["model.xml", "model.bin"], Ok(Some("model.xml"))),
        (&["net.xml", "net.bin"], Ok(Some("net.xml"))),
        (&["model.tflite", "labels.txt"], Ok(Some("model.tflite"))),
        (&["model.pdmodel", "model.pdiparams"], Ok(Some("model.pdmodel"))),
        (&["model.onnx", "model.pb", ".x.xml"], Ok(None)),
        (&["a.xml", "model.xml"], Ok(Some("model.xml"))),
        (
            &["a.xml", "b.tflite"],
            Err(
                "expected one model, found 'a.xml', 'b.tflite': default_model_filename chooses one",
            ),
        ),
    ] {
        let found = choose(files.iter().copied(), "model.xml").map_err(|e| e.text().to_owned());
        assert_eq!(found, expected.map_err(str::to_owned));
    }
}
