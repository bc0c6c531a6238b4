//! Crash reports: a backend that ends the server's process is named on standard error, and the exit
//! status is that of the crash.

use trtserver_tests::versions::{Version, model};
use trtserver_tests::{Ended, Server, folder, inference, probe};

/// The report must have a first line of these parts, and a frame in this file.
#[track_caller]
fn assert_report(ended: &Ended, parts: &[&str], file: &str) {
    let log = &ended.stderr;
    let mut lines = log.lines().filter(|line| line.starts_with("crash: "));
    let first = lines.next().unwrap_or_default();
    for part in parts {
        assert!(first.contains(part), "no {part:?} in {first:?}\n{log}");
    }
    assert!(lines.any(|line| line.starts_with("crash: #") && line.contains(file)), "{log}");
}

#[test]
fn crash_in_execute_names_signal_and_instance() {
    for (how, signal, code) in [
        ("crash", "crash: SIGSEGV (invalid memory access) at address 0x8 in execute of ", -11),
        ("abort", "crash: SIGABRT in execute of ", -6),
        ("overflow", "crash: SIGSEGV (invalid memory access) at address 0x", -11),
    ] {
        let server = Server::new().model("bad", probe("bad", &[])).start();
        let mut connection = server.connect();
        connection.send(inference("bad", &format!(r#""die":"{how}""#)));
        let ended = server.wait();
        assert_eq!(ended.code(), code, "{how}: {}", ended.stderr);
        let place = "instance 'bad_0_cpu' of model 'bad' version 1, backend 'probe' 0.2.0 from /";
        let parts = [signal, place, "/libtrtserver_probe.so, thread '"];
        assert_report(&ended, &parts, "/libtrtserver_probe.so+0x");
    }
}

#[test]
fn crash_in_model_open_names_model() {
    let config = probe("bad", &[("die", "crash"), ("die_in", "model_open")]);
    let ended = Server::new().model("bad", config).refuses_to_start();
    assert_eq!(ended.code(), -11, "{}", ended.stderr);
    let parts = ["in model_open of model 'bad' version 1, backend 'probe' 0.2.0 from /"];
    assert_report(&ended, &parts, "/libtrtserver_probe.so+0x");
}

#[test]
fn crash_while_a_library_is_loaded_at_the_start_names_file() {
    let dir = folder();
    let version = Version { macros: &["CONSTRUCTOR=abort()"], ..Version::named("v", "1.0", 1.0) };
    let file = version.put(dir.path(), "v").display().to_string();
    let server = Server::new().backend_dir(dir.path()).model("m", model("m", "v", ""));
    let ended = server.refuses_to_start();
    assert_eq!(ended.code(), -6, "{}", ended.stderr);
    let first = format!("crash: SIGABRT in the initialisers of the library {file}, thread '");
    assert_report(&ended, &[&first], "/libtrtserver_v.so+0x");
}
