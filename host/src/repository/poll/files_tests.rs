//! Unit tests of `files.rs`.

use super::*;

fn open(paths: &[&Path]) -> Repositories {
    let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).to_owned()).collect();
    Repositories::open(&paths).unwrap()
}

fn names(looked_at: &[(String, Option<ModelFiles>)]) -> Vec<String> {
    let text = |(name, files): &(String, Option<ModelFiles>)| match files {
        None => format!("-{name}"),
        Some(files) if files.len() == 1 => name.clone(),
        Some(files) => format!("{name}*{}", files.len()),
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
    assert_eq!(look(&mut files, Extent::All), ["a", "b"]);
    assert!(look(&mut files, Extent::Hinted).is_empty());
    fs::write(first.join("b/config.pbtxt"), "x").unwrap();
    assert_eq!(look(&mut files, Extent::Hinted), ["b"]);
    // In two repositories.
    fs::create_dir_all(second.join("a")).unwrap();
    assert_eq!(look(&mut files, Extent::Hinted), ["a*2"]);
    fs::remove_dir(second.join("a")).unwrap();
    fs::remove_dir_all(first.join("b")).unwrap();
    assert_eq!(look(&mut files, Extent::Hinted), ["a", "-b"]);
}

#[test]
fn failed_listing_removes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("a/1")).unwrap();
    let mut files = RepositoryFiles::new(&open(&[&root]));
    let look = |files: &mut RepositoryFiles| names(&files.look(&Hints::default(), Extent::All));
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
