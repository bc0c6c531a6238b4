//! Isolated models and their child processes as the tests see them.

use crate::repository::probe;
use crate::server::Running;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// An isolated model of the test plugin.
pub fn isolated(name: &str, more: &[(&str, &str)]) -> String {
    probe(name, &[&[("isolation", "process")], more].concat())
}

/// Child processes of a model (`NAME:`), or of all models.
pub fn processes(server: &Running, model: &str) -> Vec<Pid> {
    let parent = server.process().pid().as_raw_nonzero().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.parse().ok().and_then(Pid::from_raw) else { continue };
        let read = |file| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let stat = read("stat");
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let (state, of) = (fields.next(), fields.next());
        let label = format!("model {model}");
        if of == Some(&*parent) && state != Some("Z") && read("cmdline").contains(&label) {
            found.push(pid);
        }
    }
    found
}

/// The child process of a model, once that of a replaced version has ended.
#[track_caller]
pub fn process(server: &Running, model: &str) -> Pid {
    let found = || processes(server, &format!("{model}:"));
    server.poll_until(&format!("{model} has one process"), |_| found().len() == 1);
    found()[0]
}

/// Kills the child process of a model.
#[track_caller]
pub fn kill(server: &Running, model: &str) {
    let pid = process(server, model);
    kill_process(pid, Signal::KILL).unwrap_or_else(|e| panic!("{model}: {e}"));
}

/// Stops the child process of a model, and waits until all of its threads have stopped: one that is
/// still running would execute the next request.
#[track_caller]
pub fn stop(server: &Running, model: &str) -> Pid {
    let pid = process(server, model);
    kill_process(pid, Signal::STOP).unwrap_or_else(|e| panic!("{model}: {e}"));
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    let is_stopped = |task: fs::DirEntry| {
        fs::read_to_string(task.path().join("stat")).is_ok_and(|stat| stat.contains(") T "))
    };
    server.poll_until(&format!("{model} is stopped"), |_| {
        fs::read_dir(&tasks).is_ok_and(|mut tasks| tasks.all(|task| task.is_ok_and(is_stopped)))
    });
    pid
}

pub fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until the model serves requests.
pub fn wait_until_served(server: &Running, model: &str) {
    server.poll_until(&format!("{model} serves"), |s| s.infer(model, "").status == 200);
}
