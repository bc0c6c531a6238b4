//! Unit tests of `files.rs`.

use super::*;
use trtserver_model_store::StoreSettings;

fn open(paths: &[&Path]) -> ModelRepositories {
    let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).to_owned()).collect();
    ModelRepositories::open(&paths, &StoreSettings::default(), false).unwrap()
}

fn names(looked_at: &[(String, FilesLook)]) -> Vec<String> {
    let text = |(name, look): &(String, FilesLook)| match look {
        FilesLook::Absent => format!("-{name}"),
        FilesLook::Failed => format!("?{name}"),
        FilesLook::Files(files) if files.len() == 1 => name.clone(),
        FilesLook::Files(files) => format!("{name}*{}", files.len()),
    };
    looked_at.iter().map(text).collect()
}

#[test]
fn models_that_changed_are_read() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = [dirs[0].path(), dirs[1].path()];
    for path in ["a/1", "b/1", ".git/1", "c.tmp/1", "lost+found"] {
        fs::create_dir_all(first.join(path)).unwrap();
    }
    fs::write(first.join("file"), "x").unwrap();
    let mut files = RepositoryFiles::new(&open(&[first, second]));
    let look = |files: &mut RepositoryFiles, extent| {
        let hints = files.hints();
        names(&files.look(&hints, extent))
    };
    assert_eq!(look(&mut files, LookExtent::All), ["a", "b"]);
    assert!(look(&mut files, LookExtent::Hinted).is_empty());
    fs::write(first.join("b/config.pbtxt"), "x").unwrap();
    assert_eq!(look(&mut files, LookExtent::Hinted), ["b"]);
    // In two repositories.
    fs::create_dir_all(second.join("a")).unwrap();
    assert_eq!(look(&mut files, LookExtent::Hinted), ["a*2"]);
    fs::remove_dir(second.join("a")).unwrap();
    fs::remove_dir_all(first.join("b")).unwrap();
    assert_eq!(look(&mut files, LookExtent::Hinted), ["a", "-b"]);
}

#[test]
fn failed_listing_removes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("a/1")).unwrap();
    let mut files = RepositoryFiles::new(&open(&[&root]));
    let look =
        |files: &mut RepositoryFiles| names(&files.look(&WatchHints::default(), LookExtent::All));
    assert_eq!(look(&mut files), ["a"]);
    let moved = dir.path().join("moved");
    fs::rename(&root, &moved).unwrap();
    assert_eq!(look(&mut files), ["a"]);
    // As after an unmount.
    fs::create_dir(&root).unwrap();
    assert_eq!(look(&mut files), ["a"]);
    fs::remove_dir(&root).unwrap();
    fs::rename(&moved, &root).unwrap();
    assert_eq!(look(&mut files), ["a"]);
    fs::remove_dir_all(root.join("a")).unwrap();
    assert_eq!(look(&mut files), ["-a"]);
}

/// CPU time of this thread.
fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// The promise is 10 ms in a release build; `--nocapture` prints the figures.
#[test]
fn looking_at_a_thousand_models_is_cheap() {
    let dir = tempfile::tempdir().unwrap();
    let models = 1000;
    for i in 0..models {
        let model = dir.path().join(format!("model_{i}"));
        fs::create_dir_all(model.join("1")).unwrap();
        fs::write(model.join("config.pbtxt"), "max_batch_size: 8\n").unwrap();
        fs::write(model.join("1/model.onnx"), "x").unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        for path in [model.join("1"), model] {
            fs::File::open(path).unwrap().set_modified(old).unwrap();
        }
    }
    let mut files = RepositoryFiles::new(&open(&[dir.path()]));
    assert_eq!(files.look(&WatchHints::default(), LookExtent::All).len(), models);
    fs::write(dir.path().join("model_7/1/model.onnx"), "xy").unwrap();
    let mut look = |extent| {
        let before = cpu_ms();
        let found = files.look(&WatchHints::default(), extent);
        (found.len(), cpu_ms() - before)
    };
    let (looked_at, all) = look(LookExtent::All);
    assert_eq!(looked_at, models);
    let (looked_at, watched) = look(LookExtent::Unwatched);
    println!("everything: {all:.2} ms; with events: {watched:.3} ms for {looked_at} models");
    assert!(all < 100.0 && watched < 10.0, "{all} ms, {watched} ms");
}
