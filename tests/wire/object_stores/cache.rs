//! The cache of models from object stores.

use super::{cache, put_model, server};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use trtserver_tests::control::{Control, assert_ok};
use trtserver_tests::fake_gcs::{FakeGcs, Fault};
use trtserver_tests::{Running, Signal, compile, folder, probe};

#[test]
fn restart_and_second_server_download_nothing_again() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    let cache = cache();
    let first = server(&gcs, &cache).start();
    assert_ok(first.load("m"));
    let second = server(&gcs, &cache).start();
    assert_ok(second.load("m"));
    assert!(first.serves("m") && second.serves("m"));
    let lookups = |server: &Running| {
        ["hits", "misses"]
            .map(|kind| server.metrics(&format!("trtserver_model_cache_{kind}_total")))
    };
    let [hits, misses] = lookups(&first).map(Option::unwrap_or_default);
    assert!(misses > 0.0, "{hits} hits");
    assert_eq!(lookups(&second), [Some(hits + misses), Some(0.0)]);
    let bytes = second.metrics("trtserver_model_cache_bytes");
    assert!(bytes > Some(0.0), "{bytes:?}");
    assert!(first.stop().success() && second.stop().success());
    let third = server(&gcs, &cache).start();
    assert_ok(third.load("m"));
    assert!(third.serves("m"));
    assert_eq!(gcs.requests("models/m/1/weights"), 1);
    assert!(third.stop().success());
    assert_eq!(fs::read_dir(cache.path().join("trees")).unwrap().count(), 0, "trees remain");
}

#[test]
fn damaged_file_is_downloaded_again() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    let cache = cache();
    let first = server(&gcs, &cache).start();
    assert_ok(first.load("m"));
    assert!(first.stop().success());
    for blob in fs::read_dir(cache.path().join("blobs")).unwrap() {
        let path = blob.unwrap().path();
        let mut content = fs::read(&path).unwrap();
        content[0] ^= 1;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, content).unwrap();
    }
    let second = server(&gcs, &cache).start();
    assert_ok(second.load("m"));
    assert!(second.serves("m"));
    assert_eq!(gcs.requests("models/m/1/weights"), 2);
    assert!(second.log().contains("is damaged"), "{}", second.log());
}

#[test]
fn interrupted_download_is_resumed() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    // Two chunks.
    let large: Vec<u8> = (0..(9 << 20)).map(|i: u32| (i / 7) as u8).collect();
    gcs.put("models/m/1/weights", &large);
    gcs.fail("models/m/1/weights bytes=8388608-", Fault::Stall);
    let cache = cache();
    let first = server(&gcs, &cache).start();
    assert_eq!(first.load("m").status, 400);
    first.process().signal(Signal::KILL);
    gcs.repair();
    let second = server(&gcs, &cache).start();
    assert_ok(second.load("m"));
    let log = second.log();
    assert!(log.contains("the download is resumed, 1048576 of 9437184 bytes are missing"), "{log}");
    assert_eq!(gcs.requests("models/m/1/weights bytes=0-"), 1);
    let blobs = fs::read_dir(cache.path().join("blobs")).unwrap();
    let found = blobs.map(|blob| fs::read(blob.unwrap().path()).unwrap());
    assert!(found.into_iter().any(|content| content == large), "the content differs");
}

#[test]
fn models_that_are_not_loaded_leave_at_the_size_limit() {
    let gcs = FakeGcs::start();
    for name in ["a", "b", "c"] {
        gcs.put(&format!("models/{name}/config.pbtxt"), probe(name, &[]));
        gcs.put(&format!("models/{name}/1/weights"), name.repeat(40_000));
    }
    let cache = cache();
    let server = server(&gcs, &cache).flag("--model-cache-size=100000").start();
    assert_ok(server.load("a"));
    assert_ok(server.load("b"));
    let refused = server.load("c").error_text();
    assert!(refused.contains("--model-cache-size"), "{refused}");
    assert!(server.serves("a") && server.serves("b") && !server.serves("c"));
    assert_ok(server.unload("a"));
    server.poll_until("'c' loads in the space of 'a'", |server| server.load("c").status == 200);
    assert!(server.serves("b") && server.serves("c"));
}

#[test]
fn only_changed_files_and_selected_versions_are_downloaded() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "m");
    gcs.put("models/m/2/weights", "two");
    let cache = cache();
    let server = server(&gcs, &cache).start();
    assert_ok(server.load("m"));
    assert_eq!(gcs.requests("models/m/1/weights"), 0, "version 1 is not selected");
    assert_eq!(gcs.requests("models/m/2/weights"), 1);
    gcs.put("models/m/3/weights", "three");
    assert_ok(server.load("m"));
    assert_eq!(gcs.requests("models/m/2/weights"), 1);
    assert_eq!(gcs.requests("models/m/3/weights"), 1);
    assert_eq!(server.get("/v2/models/m/versions/3/ready").status, 200);
    // Nothing has changed.
    let listed = gcs.requests("bytes=");
    assert_ok(server.load("m"));
    assert_eq!(gcs.requests("bytes="), listed);
}

#[test]
fn full_disk_fails_the_model_and_damages_nothing() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "small");
    put_model(&gcs, "large");
    gcs.put("models/large/1/weights", vec![7; 3 << 20]);
    let cache = cache();
    let folder = folder();
    let library = folder.path().join("libfull_disk.so");
    compile("tests/fakes/full_disk.c", &library, &[]);
    let full = server(&gcs, &cache).env("LD_PRELOAD", &library).env("FAKE_DISK_FREE", "1000000");
    let full = full.start();
    assert_ok(full.load("small"));
    let refused = full.load("large").error_text();
    assert!(refused.contains("No space left on device"), "{refused}");
    assert!(refused.contains("models/large/1/weights"), "{refused}");
    assert!(full.serves("small") && !full.serves("large"));
    assert_eq!(fs::read_dir(cache.path().join("partial")).unwrap().count(), 0);
    assert!(full.stop().success());
    let server = server(&gcs, &cache).start();
    assert_ok(server.load("large"));
    assert!(server.serves("large"));
    assert!(!server.log().contains("is damaged"), "{}", server.log());
}

#[test]
fn trees_are_removed_before_the_server_ends() {
    let gcs = FakeGcs::start();
    let names = ["a", "b", "c"];
    names.iter().for_each(|name| put_model(&gcs, name));
    let cache = cache();
    let folder = folder();
    let library = folder.path().join("libslow_removal.so");
    compile("tests/fakes/slow_removal.c", &library, &[]);
    let server = server(&gcs, &cache).env("LD_PRELOAD", &library).start();
    names.iter().for_each(|name| assert_ok(server.load(name)));
    assert!(server.stop().success());
    let left = fs::read_dir(cache.path().join("trees")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "trees remain: {left:?}");
}
