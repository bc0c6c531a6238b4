//! Unit tests of `bare_layout.rs`.

use super::*;
use std::fs;

fn names() -> BTreeSet<String> {
    ["model.onnx", "model.plan", "model.netdef", "model.savedmodel"].map(str::to_owned).into()
}

/// A directory with these files; a name that ends with a slash is an empty directory.
fn layout(files: &[&str]) -> RootLayout {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        let path = root.path().join(file);
        if file.ends_with('/') {
            fs::create_dir_all(path).unwrap();
            continue;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    match read_layout(root.path(), &names()) {
        RootLayout::Models { warning } => {
            let shown = root.path().display().to_string();
            RootLayout::Models { warning: warning.map(|text| text.replace(&shown, "DIR")) }
        }
        bare => bare,
    }
}

#[test]
fn files_of_one_model_are_a_bare_repository() {
    for (files, want) in [
        (&["model.onnx"][..], "model.onnx"),
        (&["model.plan", "config.pbtxt", "labels.txt", "README.md"], "model.plan"),
        (&["model.netdef", "init_model.netdef"], "model.netdef"),
        (&["model.onnx", "weights/w.bin", "warmup/sample", ".hidden/1/x"], "model.onnx"),
        (&["model.savedmodel/saved_model.pb", "model.savedmodel/variables/v"], "model.savedmodel"),
        (&["saved_model.pb", "variables/variables.index", "assets/"], "saved_model.pb"),
        (&["saved_model.pbtxt"], "saved_model.pbtxt"),
    ] {
        match layout(files) {
            RootLayout::Bare(entry) => assert_eq!(entry.name(), want, "{files:?}"),
            models => panic!("{files:?}: {models:?}"),
        }
    }
}

#[test]
fn model_directories_are_a_repository_and_mistakes_are_warnings() {
    for (files, want) in [
        (&[][..], None),
        (&["m/1/model.onnx", "README.md"], None),
        (&["m/config.pbtxt", "1/config.pbtxt"], None),
        (&["1/1/model.onnx"], None),
        (&["model.onnx/1/model.onnx"], None),
        (
            &["model.onnx", "m/1/model.onnx", "n/config.pbtxt", "other/file"],
            Some(
                "'model.onnx' in model repository 'DIR' is not served, because model directories are beside it ('m', \
                 'n'): move it to 'DIR/NAME/1/model.onnx'",
            ),
        ),
        (
            &["model.onnx", "1/model.onnx"],
            Some(
                "model repository 'DIR' looks like the directory of one model, since it has the version directory '1' \
                 beside 'model.onnx': the repository is the directory above it",
            ),
        ),
        (&["config.pbtxt", "3/model.onnx"], Some("version directory '3' beside 'config.pbtxt'")),
        (
            &["resnet.onnx", "labels.txt"],
            Some(
                "model repository 'DIR' has no model directory; the file of a model that lies there itself is named \
                 'model.netdef' or 'model.onnx' or 'model.plan' or 'model.savedmodel' or 'saved_model.pb'; found \
                 'labels.txt', 'resnet.onnx'",
            ),
        ),
    ] {
        let RootLayout::Models { warning } = layout(files) else { panic!("{files:?} is bare") };
        match want {
            None => assert_eq!(warning, None, "{files:?}"),
            Some(want) => {
                let warning = warning.unwrap_or_default();
                assert!(warning.contains(want), "{files:?}: {warning}");
            }
        }
    }
}

#[test]
fn entries_belong_to_the_model_or_its_version() {
    use VersionEntry::{Model, None, Version};
    let named = BareEntry::Named("model.onnx".to_owned());
    let whole =
        BareEntry::WholeDirectory { name: "saved_model.pb".to_owned(), as_entry: WHOLE_DIRECTORY };
    for (entry, name, is_dir, want) in [
        (&named, "model.onnx", false, Version),
        (&named, "model.onnx.data", false, Version),
        (&named, "weights", true, Version),
        (&named, "config.pbtxt", false, Model),
        (&named, "labels.txt", false, Model),
        (&named, "warmup", true, Model),
        (&whole, "saved_model.pb", false, Model),
        (&whole, "config.pbtxt", false, Model),
        (&whole, "variables", true, None),
        (&whole, "configs", true, Model),
    ] {
        assert_eq!(entry.place(name, is_dir), want, "{name}");
    }
}
