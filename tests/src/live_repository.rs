//! A repository that changes under constant load from the real clients of both generations: models
//! and versions are edited, broken, repaired, downgraded, deleted and added again.
//! `cargo xtask soak -- --repository` runs it for two minutes.

use crate::compile::folder;
use crate::control::pair;
use crate::install::python;
use crate::polling::{ALL, Polled, numbered, numbered_sums, polling};
use crate::python::{python_v1, python_v2};
use crate::server::{Running, Server};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

/// The models; each number is its version times 1000, and the number of the edit.
pub fn server() -> Server {
    polling()
        .file("steady/1/value", "1000")
        .file("steady/config.pbtxt", numbered("steady"))
        .file("edited/1/value", "1000")
        .file("edited/config.pbtxt", numbered("edited"))
        .file("versions/1/value", "1000")
        .file("versions/2/value", "2000")
        .file("versions/config.pbtxt", numbered("versions") + ALL)
        .file("moved/1/value", "1000")
        .file("moved/config.pbtxt", numbered("moved"))
        .file("sums/1/value", "1000")
        .file("sums/config.pbtxt", numbered_sums("sums", "5000000"))
        .file("pair/config.pbtxt", pair("edited"))
        .file("pair/1/none", "")
}

/// Sends requests with both clients and changes the models, in rounds while `goes_on`. Panics if a
/// response was wrong or a change was not served.
pub fn change(server: &Running, goes_on: impl Fn(u64) -> bool) {
    let dir = folder();
    let end = dir.path().join("end");
    let until = format!("--until={}", end.display());
    let begun = ["v1", "v2"].map(|generation| dir.path().join(generation));
    let flags = begun.each_ref().map(|file| format!("--begun={}", file.display()));
    thread::scope(|scope| {
        // Written also by a failed assertion, so that the clients end.
        let _end = WriteOnDrop(&end);
        let v1 = scope.spawn(|| python_v1(server, "v1_live_repository.py", &[&until, &flags[0]]));
        let v2 = scope.spawn(|| python_v2(server, "v2_live_repository.py", &[&until, &flags[1]]));
        // Without a v1 client for this machine its script has ended.
        let sends = |i: usize| begun[i].exists() || (python("v1").is_none() && i == 0);
        server.poll_until("all clients had a response", |_| {
            assert!(!v2.is_finished(), "a client has ended");
            sends(0) && sends(1)
        });
        let mut round = 0;
        while goes_on(round) {
            round += 1;
            one_round(server, i64::try_from(round).unwrap_or(1) % 300);
            assert!(!v2.is_finished(), "a client got a wrong response");
        }
        fs::write(&end, "").unwrap_or_else(|e| panic!("{}: {e}", end.display()));
        for client in [v1, v2] {
            client.join().unwrap_or_else(|_| panic!("a client got a wrong response"));
        }
    });
    let log = server.log();
    for unchanged in ["re-loading: steady", "re-loading: versions:1\""] {
        assert!(!log.contains(unchanged), "{unchanged}");
    }
    assert!(
        server.metrics(r#"nv_inference_request_success{model="steady",version="1"}"#) > Some(0.0)
    );
}

struct WriteOnDrop<'a>(&'a Path);

impl Drop for WriteOnDrop<'_> {
    fn drop(&mut self) {
        let _ = fs::write(self.0, "");
    }
}

fn one_round(server: &Running, round: i64) {
    let models = server.models();
    let edit = 2 * round;
    // An edit, with sequences in progress; the ensemble follows.
    models.number("edited", 1, 1000 + edit);
    models.number("sums", 1, 1000 + edit);
    server.wait_for_answer("edited", 1, 1000 + edit);
    server.wait_for_answer("pair", 1, 2000 + 2 * edit);

    // A version is added, changed and removed beside one that stays.
    models.number("versions", 3, 3000 + edit);
    server.wait_for_answer("versions", 3, 3000 + edit);
    models.number("versions", 3, 3001 + edit);
    server.wait_for_answer("versions", 3, 3001 + edit);
    fs::remove_dir_all(models.path().join("versions/3")).unwrap_or_else(|e| panic!("{e}"));
    server.poll_until("version 2 is the latest", |server| {
        server.answer("versions").is_some_and(|(version, _)| version == 2)
    });
    models.number("versions", 2, 2000 + edit);
    server.wait_for_answer("versions", 2, 2000 + edit);

    // A broken edit, repaired by an edit.
    models.file("edited/config.pbtxt", "name: \"edited\"\nmax_batch_sise: 8\n");
    server.poll_until("the reason is shown", |server| {
        server.reason("edited").contains("config.pbtxt:2:1:")
    });
    models.number("edited", 1, 1001 + edit);
    models.file("edited/config.pbtxt", numbered("edited"));
    server.wait_for_answer("edited", 1, 1001 + edit);

    // A downgrade: an older file takes the place of the newer one.
    let older = SystemTime::now() - Duration::from_secs(86_400);
    let part = models.file("edited/1/value.tmp", (1000 + edit).to_string());
    fs::File::open(&part)
        .and_then(|file| file.set_modified(older))
        .and_then(|()| fs::rename(&part, part.with_file_name("value")))
        .unwrap_or_else(|e| panic!("{}: {e}", part.display()));
    server.wait_for_answer("edited", 1, 1000 + edit);

    // A model is deleted and added again.
    models.remove("moved");
    server.poll_until("the model is removed", |server| server.answer("moved").is_none());
    models.number("moved", 1, 1000 + edit);
    models.file("moved/config.pbtxt", numbered("moved"));
    server.wait_for_answer("moved", 1, 1000 + edit);

    // Tags reopen nothing.
    let tag = format!("metric_tags {{ key: \"round\" value: \"{round}\" }}\n");
    models.file("steady/config.pbtxt", numbered("steady") + &tag);
    let label = format!("_round=\"{round}\"");
    server.poll_until("the tag is shown", |server| server.metrics_text().contains(&label));
    models.file("steady/config.pbtxt", numbered("steady"));
    server.poll_until("the tag is gone", |server| !server.metrics_text().contains(&label));
    assert_eq!(server.answer("steady"), Some((1, 1000)));
}
