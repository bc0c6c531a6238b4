//! The client programs of clients/programs and their models, which examples/clients/models.py
//! makes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use trtserver_tests::{
    Process, Running, Server, TIMEOUT, dist, folder, python, python_output, python_v1, python_v2,
    root, say,
};

pub static SERVER: LazyLock<Running> = LazyLock::new(|| {
    let dist = dist().display().to_string();
    with_models(&["--client", &dist]).start_shared()
});

/// The programs have fixed sequence ids and names of shared memory, as the manual prints them: one
/// test at a time runs them.
pub fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

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

/// The Python programs with the library of 2020, and the C++ programs with ours, print the same.
#[test]
fn programs_in_cpp_and_in_python_with_the_client_of_2020() {
    let _alone = alone();
    let programs = dist().join("bin").display().to_string();
    let arguments = ["--programs", &programs, "--without", "graphdef"];
    python_v1(&SERVER, "v1_programs.py", &arguments);
}

/// In the Python environment of 2020's client, which has Pillow.
#[test]
fn programs_in_python_with_the_wheel() {
    let _alone = alone();
    let packages = Some(super::python::packages());
    python_output("v1", packages, &SERVER, "v1_programs.py", &["--without", "graphdef"]);
}

#[test]
fn image_client_with_tensorflow() {
    let server = with_models(&["--tensorflow"]).start();
    python_v1(&server, "v1_programs.py", &["-k", "graphdef"]);
}

/// The commands of docs/clients.md in the section about the programs.
#[test]
fn clients_md() {
    let Some(program) = python("v1") else {
        return say("SKIPPED docs/clients.md: the v1 client has no build for this machine");
    };
    let script = root().join("tests/python/v1_program.py");
    section_of_clients_md("Programs", &format!("{} {}", program.display(), script.display()));
}

/// The commands of docs/clients.md in the section about the wheel.
#[test]
fn clients_md_python() {
    let Some(program) = python("v2") else { panic!("no Python") };
    let packages = super::python::packages().display();
    section_of_clients_md("Python", &format!("env PYTHONPATH={packages} {}", program.display()));
}

/// The commands of docs/clients.md in the section about trtserver-perf.
#[test]
fn clients_md_perf() {
    section_of_clients_md("trtserver-perf", "python");
}

fn section_of_clients_md(title: &str, python: &str) {
    let page = fs::read_to_string(root().join("docs/clients.md")).unwrap_or_default();
    let start = format!("{title}\n");
    let section = page.split("\n## ").find(|section| section.starts_with(&start));
    let dir = folder();
    let copy = dir.path().join("clients.md");
    fs::write(&copy, section.unwrap_or_default()).unwrap_or_else(|e| panic!("{e}"));
    let python = format!("--set=PYTHON={python}");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("--set=PATH={}:{path}", dist().join("bin").display());
    let _alone = alone();
    python_v2(&SERVER, "run_docs.py", &[&python, &path, &copy.display().to_string()]);
}
