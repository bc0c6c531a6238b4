//! New auth files while the server runs, and files that cannot be used.

use super::{AuthFile, metric, send, server};
use trtserver_tests::{Running, Signal, trtserver};

fn status(server: &Running, name: &str) -> u16 {
    send(server.http(), Some(name), "GET", "/v2", b"").status
}

#[test]
fn new_files_are_taken_over_and_bad_ones_are_not() {
    let file = AuthFile::new("admin {admin} *\nold {old} read\n");
    let running = server(&file).flag("--auth-reload-secs=0").start();
    assert_eq!([status(&running, "old"), status(&running, "new")], [200, 401]);
    let reloads = |outcome: &str| {
        metric(&running, &format!("trtserver_auth_reloads_total{{outcome=\"{outcome}\"}}"))
    };
    for (text, looks) in [("admin {admin} *\nnew {new} write\n", 1.0), ("admin -token *", 2.0)] {
        file.write(text);
        running.signal(Signal::HUP);
        running.poll_until("the bad file is counted", |_| reloads("failure") == looks);
        assert_eq!([status(&running, "old"), status(&running, "new")], [200, 401]);
    }
    running.signal(Signal::HUP);
    running.poll_until("the bad file is counted again", |_| reloads("failure") == 3.0);
    let path = file.path().display().to_string();
    running.wait_for_log(&format!(
        "auth file {path}, line 2: scope 'write': 'write' is not a kind of access: expected read, infer, control or *; \
         the names before stay in use"
    ));
    let log = running.log();
    let second = format!("auth file {path}, line 1: a credential cannot be read");
    assert_eq!(log.matches(&second).count(), 1, "logged once: {log}");
    assert!(!log.contains("-token"), "{log}");
    file.write("admin {admin} *\nold {new} read\n");
    running.signal(Signal::HUP);
    running.poll_until("the new file is taken over", |_| reloads("success") == 1.0);
    assert_eq!([status(&running, "old"), status(&running, "new")], [401, 200]);
    running.wait_for_log(&format!("new auth file {path}: 2 names"));
    running.wait_for_log("SIGHUP: the auth file is read again");
    assert!(!running.log().contains("SIGHUP ignored"));
}

#[test]
fn files_are_looked_at_again_and_again() {
    let file = AuthFile::new("admin {admin} *\n");
    let running = server(&file).flag("--auth-reload-secs=1").start();
    file.write("admin {admin} *\nnew {new} read\n");
    running.poll_until("the new file is taken over", |server| status(server, "new") == 200);
}

#[test]
fn files_that_cannot_be_used_end_the_start() {
    let file = AuthFile::new("a s3cret read\n");
    let path = file.path().display().to_string();
    for (flag, text) in [
        (file.flag(), format!("auth file {path}, line 1: a credential cannot be read: expected")),
        (
            "--auth-file=/nowhere/auth".to_owned(),
            "auth file /nowhere/auth: No such file".to_owned(),
        ),
    ] {
        let ended = trtserver([
            "--model-store=/models",
            "--http-port=0",
            "--grpc-port=0",
            "--metrics-port=0",
            &flag,
        ]);
        assert_eq!(ended.status.code(), Some(1));
        assert!(
            ended.stderr.contains(&text) && !ended.stderr.contains("s3cret"),
            "{}",
            ended.stderr
        );
    }
}
