//! The client programs of clients/programs and their models, which examples/clients/models.py makes.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use trtserver_tests::{Process, Running, Server, TIMEOUT, python, python_v1, python_v2, root, say};

static SERVER: LazyLock<Running> = LazyLock::new(|| with_models(&[]).start_shared());

/// A server with the models of the programs.
fn with_models(flags: &[&str]) -> Server {
    let server = Server::new();
    make_models(server.models(), flags);
    server
}

fn make_models(repository: &Path, flags: &[&str]) {
    let Some(program) = python("v2") else { panic!("no Python") };
    let mut command = Command::new(program);
    command.arg(root().join("examples/clients/models.py")).arg(repository).args(flags);
    let ended = Process::spawn(command).wait(TIMEOUT);
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
fn python_programs_with_the_client_of_2020() {
    python_v1(&SERVER, "v1_programs.py", &["--without", "graphdef"]);
}

#[test]
fn image_client_with_tensorflow() {
    let server = with_models(&["--tensorflow"]).start();
    python_v1(&server, "v1_programs.py", &["-k", "graphdef"]);
}

/// The commands of docs/clients.md that use the programs.
#[test]
fn clients_md() {
    let Some(program) = python("v1") else {
        return say("SKIPPED docs/clients.md: the v1 client has no build for this machine");
    };
    let script = root().join("tests/python/v1_program.py");
    let python = format!("--set=PYTHON={} {}", program.display(), script.display());
    python_v2(&SERVER, "run_docs.py", &[&python, "docs/clients.md"]);
}
