//! Models that cannot be loaded: each has a reason, and everything else keeps serving.

use std::fs;
use std::os::unix::fs::symlink;
use trtserver_tests::polling::{Polled, numbered, polling};
use trtserver_tests::{Server, probe};

/// A result of the file system.
#[track_caller]
fn done<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|e| panic!("{e}"))
}

/// Names of the bad models, and a part of the reason of each.
fn bad_models(server: &Server) -> Vec<(&'static str, String)> {
    let root = server.models();
    let write = |name: &str, config: &[u8]| {
        done(fs::create_dir_all(root.join(name).join("1")));
        done(fs::write(root.join(name).join("config.pbtxt"), config));
    };
    let config = |name: &str, text: String| write(name, text.as_bytes());
    let link = |target: &str, path: &str| {
        let path = root.join(path);
        let _ = fs::remove_file(&path);
        done(symlink(target, path));
    };
    done(fs::create_dir_all(root.join("empty")));
    config("wrong_name", probe("other", &[]));
    config("platform", "name: \"platform\" platform: \"tensorflow_saved\"".into());
    config("negative", probe("negative", &[]).replace("dims: [ -1 ]", "dims: [ -7 ]"));
    let nan = probe("not_a_number", &[]).replace("max_batch_size: 8", "max_batch_size: nan");
    config("not_a_number", nan);
    write("binary", &[0, 159, 146, 150, 255, 0, 1]);
    config("long", "#\n".repeat(2_000_000) + &probe("long", &[]).replace("FP32", "FP33"));
    config("versions", probe("versions", &[]));
    done(fs::remove_dir(root.join("versions/1")));
    for version in ["-1", "1a", "01", "9999999999999999999", "0x"] {
        done(fs::create_dir_all(root.join("versions").join(version)));
    }
    config("device", String::new());
    link("/dev/zero", "device/config.pbtxt");
    config("loops", String::new());
    link("config.pbtxt", "loops/config.pbtxt");
    link(".", "loops/1/self");
    config("fifo", String::new());
    let fifo = root.join("fifo/config.pbtxt");
    done(fs::remove_file(&fifo));
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    done(rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0));
    let at = |path: &str| root.join(path).display().to_string();
    vec![
        ("empty", "config.pbtxt".into()),
        ("wrong_name", "'wrong_name'".into()),
        ("platform", "tensorflow_saved".into()),
        ("negative", "dim".into()),
        ("not_a_number", at("not_a_number/config.pbtxt:3:17")),
        ("binary", at("binary/config.pbtxt")),
        ("long", "config.pbtxt".into()),
        ("device", "leads to '/dev/zero'".into()),
        ("loops", "config.pbtxt".into()),
        ("fifo", "FIFO".into()),
    ]
}

#[test]
fn every_bad_model_has_a_reason_and_the_others_serve() {
    let server = polling()
        .file("good/1/value", "10")
        .file("good/config.pbtxt", numbered("good"))
        .flag("--exit-on-error=false");
    let bad = bad_models(&server);
    let server = server.start();
    let check = |when: &str| {
        for (name, part) in &bad {
            let entries = server.entries(name);
            let [entry] = &entries[..] else { panic!("{when}, {name}: {entries:?}") };
            let reason = entry["reason"].as_str().unwrap_or_default();
            assert!(reason.contains(part), "{when}, {name}: {reason}");
            assert_eq!(entry["state"], "UNAVAILABLE", "{when}, {name}");
        }
        assert!(server.entries("versions").iter().any(|entry| entry["version"] == "1"), "{when}");
        assert_eq!(server.answer("good"), Some((1, 10)), "{when}");
    };
    check("at start");
    // All are replaced by copies, which are loaded and fail in the same way.
    for (name, _) in &bad {
        let (path, moved) =
            (server.models().path().join(name), server.models().path().join("x.tmp"));
        fs::rename(&path, &moved).unwrap();
        let gone = |server: &trtserver_tests::Running| {
            let entries = server.entries(name);
            entries.is_empty() || entries[0]["reason"] == "unloaded"
        };
        server.poll_until(&format!("{name} is removed"), gone);
        fs::rename(&moved, &path).unwrap();
        let failed =
            |server: &trtserver_tests::Running| !server.reason(name).is_empty() && !gone(server);
        server.poll_until(&format!("{name} fails"), failed);
    }
    check("while running");
    // One of them is repaired.
    server.models().file("not_a_number/1/value", "3");
    server.models().file("not_a_number/config.pbtxt", numbered("not_a_number"));
    server.wait_for_answer("not_a_number", 1, 3);
    assert!(server.stop().success());
}
