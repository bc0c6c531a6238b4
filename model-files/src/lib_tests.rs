//! Unit tests of `lib.rs`.

use super::testing::{HostileModel, OWN, SECRET};
use super::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn names_are_judged_by_their_text_first() {
    for inside in ["", "a", "a/b", "./a", "a/./b", "a//b", " ", "..a", "a..", "C:\\x"] {
        assert!(stays_inside(inside), "{inside:?}");
    }
    for outside in ["..", "../a", "a/..", "a/../b", "/", "/a", "a\0", "\0"] {
        assert!(!stays_inside(outside), "{outside:?}");
    }
}

#[test]
fn links_may_lead_to_model_and_roots_only() {
    let model = HostileModel::new(&["1"]);
    let (dir, base) = (model.model(), model.model().join("1"));
    let alone = FilePlaces::new(&dir, []);
    let rooted = FilePlaces::new(&dir, [model.repository(), "relative".into(), "/absent".into()]);
    let lines = format!("/absent\n{}\n", model.repository().display());
    assert_eq!(
        FilePlaces::with_setting(&dir, Some(&lines)),
        FilePlaces::new(&dir, [model.repository()])
    );
    assert_eq!(FilePlaces::with_setting(&dir, None), alone);
    for (name, in_model, in_roots) in [
        ("own", true, true),
        ("sub/own", true, true),
        ("up/1/own", true, true),
        ("new/file", true, true),
        ("", true, true),
        ("far", false, true),
        ("out", false, false),
        ("way/secret", false, false),
        ("way/new", false, false),
        ("gone", false, false),
    ] {
        assert_eq!(alone.resolve(&base, name).is_ok(), in_model, "{name}");
        assert_eq!(rooted.resolve(&base, name).is_ok(), in_roots, "{name}");
    }
    for name in model.names_of_secret() {
        assert!(rooted.resolve(&base, &name).is_err(), "{name:?}");
    }
    let outside = model.secret().parent().unwrap().to_owned();
    assert!(FilePlaces::new(&dir, [outside]).resolve(&base, "out").is_ok());
}

#[test]
fn model_directory_may_be_a_link() {
    let model = HostileModel::new(&["1"]);
    let link = model.repository().join("link");
    symlink(model.model(), &link).unwrap();
    let places = FilePlaces::new(&link, []);
    assert!(places.resolve(&link.join("1"), "own").is_ok());
    assert!(places.resolve(&link.join("1"), "out").is_err());
}

#[test]
fn refusals_name_path_target_and_directory() {
    let model = HostileModel::new(&["1"]);
    let (dir, base) = (model.model(), model.model().join("1"));
    let places = FilePlaces::new(&dir, []);
    let text = |name: &str| places.resolve(&base, name).unwrap_err().to_string();
    let (base, secret) = (base.display(), model.secret().canonicalize().unwrap());
    assert_eq!(
        text("../x"),
        format!("\"../x\" leaves '{base}': expected a relative path without '..' and NUL bytes")
    );
    assert_eq!(
        text("out"),
        format!(
            "'{base}/out' leads to '{}', which lies outside the model's directory '{}', every repository and every \
             --model-link-dir",
            secret.display(),
            dir.display()
        )
    );
    let file = text("own/x");
    assert!(file.starts_with(&format!("'{base}/own/x' cannot be resolved: ")), "{file}");
}

#[test]
fn trees_are_judged_with_all_they_contain() {
    let model = HostileModel::new(&["1"]);
    let places = FilePlaces::new(&model.model(), [model.repository()]);
    let version = model.model().join("1");
    assert!(places.judge_tree(&version.join("sub")).is_ok());
    assert!(places.judge_tree(&version.join("own")).is_ok());
    let refusal = places.judge_tree(&version).unwrap_err().to_string();
    assert!(refusal.contains("leads to"), "{refusal}");
    fs::create_dir_all(version.join("sub/deep")).unwrap();
    symlink("..", version.join("sub/deep/loop")).unwrap();
    assert!(places.judge_tree(&version.join("sub")).is_ok());
    symlink(model.secret(), version.join("sub/deep/out")).unwrap();
    assert!(places.judge_tree(&version.join("sub")).is_err());
}

#[test]
fn allowed_names_never_open_anything_outside() {
    let model = HostileModel::new(&["1"]);
    let base = model.model().join("1");
    let places = FilePlaces::new(&model.model(), [model.repository()]);
    let opened = std::cell::Cell::new(0);
    proptest!(ProptestConfig::with_cases(4096), |(name in model.names())| {
        if let Ok(path) = places.resolve(&base, &name) {
            // As a library that reads the file, or creates it.
            if let Ok(bytes) = fs::read(&path) {
                prop_assert!(bytes == OWN && bytes != SECRET, "{name:?}");
                opened.set(opened.get() + 1);
            } else if !path.is_dir() {
                let _ = fs::write(&path, b"made");
                let _ = fs::remove_file(&path);
            }
            prop_assert!(model.is_untouched(), "{name:?}");
        }
    });
    assert!(opened.get() > 50, "{opened:?}");
}
