//! `trtserver store check`, `trtserver check` of a store, and URLs that a server refuses.

use super::{cache, put_model};
use std::process::Command;
use trtserver_tests::fake_gcs::{FakeGcs, Fault};
use trtserver_tests::{Ended, Process, Server, TIMEOUT, backends, dist, probe};

fn check(gcs: &FakeGcs, key: Option<&str>) -> Ended {
    run(gcs, &["store", "check", "--store-timeout-secs=1", &gcs.url("models")], key)
}

fn run(gcs: &FakeGcs, args: &[&str], key: Option<&str>) -> Ended {
    let mut command = Command::new(dist().join("bin/trtserver"));
    command.args(args);
    command.env_remove("TRITON_CLOUD_CREDENTIAL_PATH").env("HOME", "/nonexistent");
    // Without credentials the instance's metadata service would be asked.
    command.env("NO_GCE_CHECK", "true");
    let own = gcs.key_file();
    command.env("GOOGLE_APPLICATION_CREDENTIALS", key.map_or(own.as_os_str(), |key| key.as_ref()));
    Process::spawn(command).wait(TIMEOUT)
}

#[test]
fn readable_repository_is_listed() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "a");
    put_model(&gcs, "b");
    let ended = check(&gcs, None);
    assert_eq!(ended.code(), 0, "{}", ended.stdout);
    for line in [
        "TRITON_CLOUD_CREDENTIAL_PATH: not set",
        "GOOGLE_APPLICATION_CREDENTIALS: used",
        "service account tester@localhost",
        "list gs://bucket/models/: 2 models: a, b",
        "list gs://bucket/models/a/: 2 files",
        "read gs://bucket/models/a/1/weights: 100 bytes",
    ] {
        assert!(ended.stdout.contains(line), "{line}\n{}", ended.stdout);
    }
}

#[test]
fn refused_call_is_named() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "a");
    gcs.fail("models/a/1/weights", Fault::Status(403, "AccessDenied"));
    let ended = check(&gcs, None);
    assert_eq!(ended.code(), 1, "{}", ended.stdout);
    assert!(
        ended.stdout.contains("REFUSED: read gs://bucket/models/a/1/weights: "),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("403") && ended.stdout.contains("AccessDenied"),
        "{}",
        ended.stdout
    );
}

#[test]
fn missing_credentials_are_named() {
    let gcs = FakeGcs::start();
    let ended = check(&gcs, Some(""));
    assert_eq!(ended.code(), 1, "{}", ended.stdout);
    for line in [
        "GOOGLE_APPLICATION_CREDENTIALS: not set",
        "/nonexistent/.config/gcloud/application_default_credentials.json: does not exist",
        "instance metadata: disabled by NO_GCE_CHECK",
        "REFUSED: no credentials",
    ] {
        assert!(ended.stdout.contains(line), "{line}\n{}", ended.stdout);
    }
    assert_eq!(gcs.requests(""), 0);
}

#[test]
fn repository_in_a_store_is_validated() {
    let gcs = FakeGcs::start();
    put_model(&gcs, "good");
    put_model(&gcs, "bad");
    gcs.put("models/bad/config.pbtxt", probe("bad", &[]) + "max_batch_sise: 4\n");
    put_model(&gcs, "unlabelled");
    let config = probe("unlabelled", &[]);
    let config =
        config.replace("name: \"OUTPUT0\"", "name: \"OUTPUT0\" label_filename: \"labels.txt\"");
    gcs.put("models/unlabelled/config.pbtxt", config);
    gcs.put("models/.git/config", "no model");
    gcs.put("models/old~/config.pbtxt", "no model");
    let cache = cache();
    let backends = format!("--backend-dir={}", backends().display());
    let cache_dir = format!("--model-cache-dir={}", cache.path().display());
    let url = gcs.url("models");
    let flags = [&*backends, &cache_dir, "--store-timeout-secs=1"];
    let check = |key| run(&gcs, &[&["check"], &flags[..], &[&url]].concat(), key);
    let ended = check(None);
    assert_eq!(ended.code(), 1, "{}{}", ended.stdout, ended.stderr);
    for line in [
        "gs://bucket/models/bad/config.pbtxt:6:1: error: ModelConfig has no field max_batch_sise",
        "unable to read label file 'gs://bucket/models/unlabelled/labels.txt'",
        "3 models: 2 errors, 0 warnings",
    ] {
        assert!(ended.stdout.contains(line), "{line}\n{}", ended.stdout);
    }
    assert!(!ended.stdout.contains(&*cache.path().to_string_lossy()), "{}", ended.stdout);
    gcs.fail("list", Fault::Status(403, "AccessDenied"));
    let ended = check(None);
    assert_eq!(ended.code(), 2, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("403"), "{}", ended.stderr);
}

#[test]
fn invalid_urls_end_the_start_with_the_reason() {
    let cache = cache();
    for (url, reason) in [
        ("s3://", "names no bucket"),
        ("hdfs://host/models", "unknown scheme 'hdfs'"),
        ("s3://https://id:secret@host/bucket", "must not contain credentials"),
    ] {
        let ended = Server::new()
            .flag(format!("--model-repository={url}"))
            .flag(format!("--model-cache-dir={}", cache.path().display()))
            .refuses_to_start();
        assert!(ended.stderr.contains(reason), "{url}: {}", ended.stderr);
        assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
    }
}
