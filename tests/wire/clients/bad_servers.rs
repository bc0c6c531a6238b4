//! The programs in C++ and Python, and the C library, with servers that answer wrongly, say nothing
//! or leave midway: everything ends with an error that names the server.

use super::programs;
use super::scripted::{CUT_OFF, GARBAGE, HTML, NOTHING, cutting, listener, scripted};
use std::process::Command;
use std::thread;
use trtserver_tests::{Ended, Process, TIMEOUT, dist, keep_bytecode, python, root};

const DEADLINE: &str = "TRTSERVER_CLIENT_DEADLINE";

/// A program in C++, and in Python with the wheel.
fn in_both_languages(name: &str) -> [Command; 2] {
    let cpp = Command::new(dist().join("bin").join(name));
    let Some(interpreter) = python("v2") else { panic!("no Python") };
    let mut script = Command::new(interpreter);
    script.arg(root().join(format!("clients/programs/python/{name}.py")));
    keep_bytecode(&mut script).env("PYTHONPATH", super::python::packages());
    [cpp, script]
}

/// Arguments for HTTP, gRPC, and streams of gRPC.
const WIRES: [(&str, &[&str]); 3] =
    [("simple_client", &[]), ("simple_client", &["-i", "grpc"]), ("simple_sequence_client", &[])];

fn run(mut command: Command, arguments: &[&str], address: &str, deadline: &str) -> Ended {
    command.args(arguments).args(["-u", address]).env(DEADLINE, deadline);
    Process::spawn(command).wait(TIMEOUT)
}

#[track_caller]
fn assert_named(ended: &Ended, address: &str) {
    let error = &ended.stderr;
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(error.starts_with("error: ") && error.contains(address), "{address}: {ended:?}");
}

#[test]
fn programs_name_a_server_that_answers_wrongly_or_not_at_all() {
    let (_silent, silent) = listener();
    let mut servers: Vec<String> = [HTML, GARBAGE, CUT_OFF, NOTHING].map(scripted).into();
    servers.push(silent);
    // One after the other where they start Python.
    thread::scope(|scope| {
        for language in 0..2 {
            let servers = &servers;
            scope.spawn(move || {
                for address in servers {
                    for (name, arguments) in WIRES {
                        let [cpp, python] = in_both_languages(name);
                        let command = if language == 0 { cpp } else { python };
                        let ended = run(command, arguments, address, "0.5");
                        assert_named(&ended, address);
                    }
                }
            });
        }
    });
}

#[test]
fn programs_name_a_server_that_leaves_midway() {
    let _alone = programs::alone();
    let server = &programs::SERVER;
    // In front of, in and behind the first answer, and in the middle of a sequence.
    for most in [1, 300, 900, 1500] {
        let (http, grpc) = (cutting(server.http(), most), cutting(server.grpc(), most));
        for (name, arguments) in WIRES {
            let address =
                if name == "simple_client" && arguments.is_empty() { &http } else { &grpc };
            for command in in_both_languages(name) {
                let ended = run(command, arguments, address, "20");
                // What is short enough passes.
                if most == 1 || !ended.status.success() {
                    assert_named(&ended, address);
                }
            }
        }
    }
}

#[test]
fn the_environment_sets_the_deadline() {
    let server = &programs::SERVER;
    for (value, fails) in [("soon", true), ("-1", true), ("0", false), ("900.5", false)] {
        for (arguments, address) in [(&[][..], server.http()), (&["-i", "grpc"], server.grpc())] {
            for command in in_both_languages("simple_client") {
                let ended = run(command, arguments, address, value);
                assert_eq!(ended.code(), i32::from(fails), "{value} {ended:?}");
                let text = format!("environment variable {DEADLINE} is '{value}', expected");
                assert!(!fails || ended.stderr.contains(&text), "{ended:?}");
            }
        }
    }
}

/// Under valgrind where it is installed, otherwise with the address sanitizer.
#[test]
fn c_library_names_servers_that_misbehave_and_leaks_nothing() {
    let (_silent, silent) = listener();
    let mut servers: Vec<String> = [HTML, GARBAGE, CUT_OFF, NOTHING].map(scripted).into();
    servers.push(silent);
    let (unused, refusing) = listener();
    drop(unused);
    servers.push(refusing);
    let server = super::server().start();
    let cut = cutting(server.grpc(), 4000);
    super::c::bad_servers(&cut, &servers);
}
