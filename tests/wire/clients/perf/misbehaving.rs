//! trtserver-perf and perf_client with servers that misbehave or go away, and with readers that do.

use super::super::scripted::{GARBAGE, HTML, NOTHING, listener, scripted};
use super::{QUICK, SERVER, WIRES, perf, program, url};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};
use trtserver_tests::{Process, Server, TIMEOUT, dist, folder, probe};

#[test]
fn bad_servers_are_named() {
    let (_, refused) = listener();
    let servers = [scripted(HTML), scripted(GARBAGE), scripted(NOTHING), refused];
    thread::scope(|scope| {
        for server in &servers {
            for wire in WIRES {
                scope.spawn(move || {
                    let ended = perf(&[&wire[..], &["-mm", "-u", server]].concat());
                    assert_eq!(ended.code(), 1, "{wire:?} {ended:?}");
                    assert!(ended.stderr.contains(server.as_str()), "{wire:?} {server} {ended:?}");
                });
            }
        }
    });
}

/// Connections are accepted by the system and nothing is ever sent.
#[test]
fn a_silent_server_is_named_when_the_timeout_has_passed() {
    let (_silent, address) = listener();
    thread::scope(|scope| {
        for wire in WIRES {
            let address = &address;
            scope.spawn(move || {
                let begun = Instant::now();
                let ended = perf(&[&wire[..], &["-mm", "--timeout=1", "-u", address]].concat());
                assert_eq!(ended.code(), 1, "{wire:?} {ended:?}");
                let error = &ended.stderr;
                assert!(
                    error.contains(address) && error.contains("deadline"),
                    "{wire:?} {ended:?}"
                );
                assert!(begun.elapsed() < Duration::from_secs(20), "{wire:?}: not its usual 30 s");
            });
        }
    });
}

#[test]
fn a_server_that_ends_ends_the_measurement() {
    thread::scope(|scope| {
        for wire in [&["-iHTTP"][..], &["-igRPC"], &["-igRPC", "--streaming"]] {
            scope.spawn(move || {
                let model = probe("fixed", &[]).replace("-1", "4");
                let server = Server::new().model("fixed", model).start();
                let address = if wire[0] == "-iHTTP" { server.http() } else { server.grpc() };
                let address = address.to_owned();
                // Never stable, so that it measures until the server ends.
                let flags = ["-mfixed", "-u", &address, "-s0", "--max-trials=100000", "-v"];
                let process = program("trtserver-perf", &[wire, &flags].concat());
                process.stdout_until("a window", |out| {
                    out.contains("Pass [1] throughput").then_some(())
                });
                drop(server);
                let ended = process.wait(TIMEOUT);
                assert_eq!(ended.code(), 1, "{wire:?} {ended:?}");
                assert!(ended.stderr.starts_with("error: "), "{wire:?} {ended:?}");
                assert!(ended.stderr.contains(&address), "{wire:?} {ended:?}");
            });
        }
    });
}

/// Runs a program whose standard output, and with `both` also its standard error, is a pipe whose
/// reading end is closed.
fn into_closed_pipes(name: &str, flags: &[&str], both: bool) -> ExitStatus {
    let mut command = Command::new(dist().join("bin").join(name));
    command.args(flags);
    let closed = || std::io::pipe().map(|(_, writer)| writer).unwrap_or_else(|e| panic!("{e}"));
    command.stdout(closed());
    if both {
        command.stderr(closed());
    }
    command.status().unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn results_are_written_although_nobody_reads_the_output() {
    let folder = folder();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (csv, json, url) = (file("out.csv"), file("out.json"), url("-iHTTP"));
    let measure = |flags: &[&str], both| {
        let flags = [&QUICK[..3], &["-mfixed", &url, "-v", "-v"], flags].concat();
        into_closed_pipes("perf_client", &flags, both).code()
    };
    assert_eq!(measure(&["-d", "-c2", "-l60000", "-f", &csv], false), Some(0));
    let table = std::fs::read_to_string(&csv).expect("CSV");
    assert_eq!(table.lines().count(), 3, "{table}");
    assert_eq!(measure(&["--json", &json, "--progress"], true), Some(0));
    assert!(std::fs::read_to_string(&json).expect("JSON").ends_with("}\n"));
    // The code is that of the outcome.
    assert_eq!(measure(&["-b9"], true), Some(1));
    let perf = |flags: &[&str]| into_closed_pipes("trtserver-perf", flags, false).code();
    assert_eq!(perf(&["--compare", &json, &json]), Some(0));
    assert_eq!(perf(&["--help"]), Some(0));
}

#[test]
fn the_progress_line_is_overwritten_and_removed() {
    let mut command = Command::new(dist().join("bin/trtserver-perf"));
    command.args(&QUICK[..3]).args(["-mfixed", &url("-iHTTP"), "--progress"]);
    let ended = Process::spawn(command).wait(TIMEOUT);
    assert!(ended.status.success(), "{ended:?}");
    let line = format!("\rfixed on {}, concurrency 1: window 1 of 3 to 100, ", SERVER.http());
    assert!(ended.stderr.starts_with(&line), "{ended:?}");
    assert!(ended.stderr.contains(" s left\x1b[K\r"), "{ended:?}");
    assert!(ended.stderr.ends_with("\r\x1b[K") && !ended.stderr.contains('\n'), "{ended:?}");
    assert!(!ended.stdout.contains('\r'), "{ended:?}");
}
