//! Unit tests of `watch.rs`.

use super::*;
use std::fs;

#[test]
fn events_name_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    for model in ["a", "b"] {
        fs::create_dir_all(path.join(model).join("1")).unwrap();
    }
    let mut watches = DirWatches::new().unwrap();
    let model = |name: &str| WatchOwner::Model(name.to_owned());
    assert_eq!(watches.add(path, WatchOwner::Repository), Ok(true));
    assert_eq!(watches.add(&path.join("a"), model("a")), Ok(true));
    assert_eq!(watches.add(&path.join("a/1"), model("a")), Ok(true));
    assert_eq!(watches.add(&path.join("a/1"), model("a")), Ok(false));
    assert_eq!(watches.add(&path.join("b"), model("b")), Ok(true));
    assert!(watches.add(&path.join("c"), model("c")).is_err());
    assert_eq!(watches.read(), WatchHints::default());
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();

    fs::write(path.join("a/1/model"), "x").unwrap();
    assert_eq!(watches.read(), WatchHints { models: names(&["a"]), ..WatchHints::default() });
    fs::write(path.join("a/1/.model.swp"), "x").unwrap();
    fs::write(path.join("a/config.pbtxt~"), "x").unwrap();
    assert_eq!(watches.read(), WatchHints::default());
    fs::read(path.join("a/1/model")).unwrap();
    assert_eq!(watches.read(), WatchHints::default());

    fs::rename(path.join("b"), path.join("c")).unwrap();
    let hints = WatchHints { repositories: true, models: names(&["b", "c"]), all: false };
    assert_eq!(watches.read(), hints);
    // The directory has another name; its watch is ended.
    watches.forget("b");
    fs::write(path.join("c/config.pbtxt"), "x").unwrap();
    assert_eq!(watches.read(), WatchHints::default());
    fs::remove_dir_all(path.join("a")).unwrap();
    let hints = watches.read();
    assert!(hints.repositories && hints.models.contains("a"), "{hints:?}");
}
