//! The log: one line per record in a form that tools of the old server read, or JSON.

use trtserver_tests::{Running, Server, folder, probe};

fn log_of(flags: &[&str]) -> String {
    let server = Server::new().model("echo", probe("echo", &[]));
    let server = flags.iter().fold(server, |server, flag| server.flag(*flag)).start();
    ended(server)
}

fn ended(server: Running) -> String {
    server.infer("echo", "");
    server.signal(trtserver_tests::Signal::TERM);
    server.wait().stderr
}

/// `d` in the pattern is a digit, anything else itself.
fn looks_like(text: &str, pattern: &str) -> bool {
    text.len() >= pattern.len()
        && text
            .bytes()
            .zip(pattern.bytes())
            .all(|(t, p)| if p == b'd' { t.is_ascii_digit() } else { t == p })
}

#[test]
fn default_format_is_that_of_triton() {
    let log = log_of(&[]);
    assert!(log.contains("successfully loaded 'echo' version 1"), "{log}");
    for line in log.lines() {
        let (level, rest) = line.split_at(1);
        assert!(["I", "W", "E"].contains(&level), "{line}");
        assert!(looks_like(rest, "dddd dd:dd:dd.dddddd "), "{line}");
        let (head, message) = line.split_once("] ").expect("a head and a message");
        let place = head.rsplit(' ').next().expect("a place");
        let (file, number) = place.split_once(':').expect("a file and a line");
        assert!(!file.contains('/') && number.parse::<u32>().is_ok(), "{line}");
        assert!(!message.is_empty(), "{line}");
    }
}

#[test]
fn iso8601_format() {
    for line in log_of(&["--log-format=ISO8601"]).lines() {
        assert!(looks_like(line, "dddd-dd-ddTdd:dd:ddZ "), "{line}");
    }
}

#[test]
fn json_format() {
    let log = log_of(&["--log-format=json"]);
    assert!(log.lines().count() > 3, "{log}");
    for line in log.lines() {
        let json: serde_json::Value = serde_json::from_str(line).expect(line);
        for key in ["time", "level", "file", "line", "message"] {
            assert!(!json[key].is_null(), "no {key} in {line}");
        }
    }
}

#[test]
fn log_levels() {
    assert_eq!(log_of(&["--log-info=false"]).lines().count(), 0);
    let verbose = log_of(&["--log-info=false", "--log-verbose=1"]);
    assert!(verbose.lines().any(|line| line.starts_with('I')), "{verbose}");
}

#[test]
fn client_text_cannot_forge_a_line() {
    let server = Server::new().model("echo", probe("echo", &[])).flag("--log-verbose=2").start();
    let text = "x\\nE0101 00:00:00.000000 1 forged.rs:1] forged";
    server.infer("echo", &format!(r#""fail":"{text}""#));
    server.post("/v2/models/echo/infer", &[], format!(r#"{{"id":"{text}","inputs":[]}}"#));
    let log = ended(server);
    assert!(!log.lines().any(|line| line.starts_with("E0101 00:00:00.000000 1 forged")), "{log}");
}

#[test]
fn long_names_are_cut() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag("--model-control-mode=explicit")
        .flag("--log-verbose=2")
        .start();
    // A longer path is refused unread.
    let name = "n".repeat(60_000);
    let (load, infer) =
        (format!("/v2/repository/models/{name}/load"), format!("/v2/models/{name}/infer"));
    for path in [load, infer] {
        assert!(server.post(&path, &[], "{}").status >= 400);
    }
    let log = ended(server);
    let longest = log.lines().map(str::len).max();
    assert!(log.contains("nnn") && log.contains("bytes left out"), "{log}");
    assert!(longest < Some(20_000), "{longest:?}");
}

#[test]
fn log_file() {
    let dir = folder();
    let file = dir.path().join("trtserver.log");
    let printed = log_of(&[&format!("--log-file={}", file.display())]);
    assert_eq!(printed, "");
    let log = std::fs::read_to_string(&file).expect("the log");
    assert!(log.contains("successfully loaded 'echo' version 1"), "{log}");
}

#[test]
fn hangup_opens_the_log_file_anew() {
    let dir = folder();
    let (file, old) = (dir.path().join("trtserver.log"), dir.path().join("trtserver.log.1"));
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag(format!("--log-file={}", file.display()))
        .start();
    std::fs::rename(&file, &old).expect("the log is renamed");
    server.signal(trtserver_tests::Signal::HUP);
    server.poll_until("the log file is back", |_| file.exists());
    server.infer("echo", "");
    assert!(server.stop().success());
    let log = std::fs::read_to_string(&file).expect("the log");
    assert!(log.contains("Waiting for in-flight inferences to complete."), "{log}");
    let log = std::fs::read_to_string(&old).expect("the old log");
    assert!(log.contains("successfully loaded 'echo' version 1"), "{log}");

    // Without a log file it has no effect.
    let server = Server::new().model("echo", probe("echo", &[])).start();
    server.signal(trtserver_tests::Signal::HUP);
    server.wait_for_log("there is no log file to re-open");
    assert_eq!(server.infer("echo", "").status, 200);
}
