//! Unit tests of `reload.rs`.

use super::*;
use std::fs;
use trtserver_base::access_stats::AuthReloadOutcome::{Failure, Success};

const OLD: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn settings() -> Arc<trtserver_config::ServerSettings> {
    let args = ["trtserver", "--model-store=/m"].map(std::ffi::OsString::from);
    Arc::new(trtserver_config::from_args(args, &|_| None, "1").unwrap().settings)
}

#[test]
fn changed_files_are_taken_over_and_bad_ones_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth");
    fs::write(&path, format!("a {OLD} read\n")).unwrap();
    let stats = Arc::<AccessStats>::default();
    let (table, mut reloader) = AuthReloader::open(&path, &stats).unwrap();
    let rules = AccessRules::new(settings(), Some(table), Arc::clone(&stats));
    let counts = || (stats.reloads(Success), stats.reloads(Failure));
    reloader.look(&rules);
    assert_eq!(counts(), (0, 0));
    fs::write(&path, "a s3cret read\n").unwrap();
    for looks in 1..=2 {
        reloader.look(&rules);
        assert_eq!(counts(), (0, looks));
        let reported = reloader.reported.clone().unwrap();
        assert!(reported.contains("line 1: a credential cannot be read"), "{reported}");
    }
    fs::remove_file(&path).unwrap();
    reloader.look(&rules);
    assert_eq!(counts(), (0, 3));
    // What was in use is back: nothing has changed.
    fs::write(&path, format!("a {OLD} read\n")).unwrap();
    reloader.look(&rules);
    assert_eq!((counts(), &reloader.reported), ((0, 3), &None));
    fs::write(&path, format!("b {OLD} read\n")).unwrap();
    reloader.look(&rules);
    assert_eq!(counts(), (1, 3));
}

#[test]
fn file_that_is_being_written_is_looked_at_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth");
    fs::write(&path, format!("a {OLD} read\n")).unwrap();
    let stats = Arc::<AccessStats>::default();
    let (table, mut reloader) = AuthReloader::open(&path, &stats).unwrap();
    let rules = AccessRules::new(settings(), Some(table), Arc::clone(&stats));
    fs::write(&path, "").unwrap();
    let looks = std::thread::spawn(move || {
        reloader.look(&rules);
    });
    // Within the time to settle, unless the machine is very slow: then the look fails, as it does
    // for a file that stays empty.
    std::thread::sleep(SETTLE / 5);
    fs::write(&path, format!("b {OLD} read\n")).unwrap();
    looks.join().unwrap();
    assert_eq!(stats.reloads(Success) + stats.reloads(Failure), 1);
}
