//! The child process: `trtserver plugin-host`, started by the server for an isolated model.
//!
//! The main thread runs slow jobs one after another: loading the library, opening backend and
//! model, closing. A second thread reads the control connection, so that log levels, cancellations
//! and the end of the host are handled at once. Each instance has a thread of its own, as in the
//! server.
//!
//! The system kills the child when the **thread** that started it ends, so the host starts it from
//! its supervisor thread. Signals that are sent to the whole process group or service are ignored:
//! the host closes the child.

mod control;
mod control_reader;
mod instance;
mod log;
mod main_thread;
mod metrics;
mod model;
mod nested;
mod regions;
pub mod requested_exit;
mod requests;
mod responses;
mod unread;

use super::wire::split_socket;
use crate::messages::{MemoryReport, control_message};
use control::Control;
use control_reader::ControlReader;
use instance::Instances;
use main_thread::MainThread;
use nested::RemoteModels;
use rustix::net::AddressFamily;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use trtserver_plugin_host::crash_report;
use trtserver_plugin_host::host_api::{reported_memory, set_isolated};
use trtserver_plugin_host::load_priority;
use trtserver_plugin_host::load_priority::LowPriority;
use trtserver_plugin_host::serve_nested;

/// Added to the OOM score that the child inherits, of -1000 to 1000.
const OOM_SCORE: i32 = 500;

/// Serves the host at the other end of standard input until it closes the connection.
pub fn run_child() -> ExitCode {
    let socket = match connection() {
        Ok(socket) => socket,
        Err(why) => {
            eprintln!(
                "trtserver plugin-host: {why}.\nThe server starts this command for models of a backend with \
                 'isolation=process': it runs the backend in a child process and talks to the server over standard \
                 input. It cannot be used by hand."
            );
            return ExitCode::from(2);
        }
    };
    if let Err(e) = prefer_in_oom() {
        eprintln!("trtserver plugin-host: cannot raise /proc/self/oom_score_adj: {e}");
    }
    let started_by_load = load_priority::leave_in_child();
    crash_report::install_handlers();
    let (sender, receiver) = split_socket(socket);
    let control = Arc::new(Control::new(sender));
    log::start_forwarding(&control);
    let forwarder = match metrics::start_forwarding(&control) {
        Ok(forwarder) => forwarder,
        Err(e) => {
            eprintln!("trtserver plugin-host: {e}");
            return ExitCode::from(1);
        }
    };
    let reports = Arc::clone(&control);
    reported_memory::set_observer(move |scope, report| {
        reports.send(control_message::MessageKind::Memory(MemoryReport {
            scope,
            label: report.reporter.label.to_string(),
            memory_type: report.memory.memory_type,
            device_id: report.memory.device_id,
            bytes: report.bytes,
        }));
    });
    let instances = Arc::new(Instances::default());
    let end = Arc::clone(&instances.end);
    set_isolated(move |broken, reason| end.begin_exit(broken, reason));
    serve_nested(RemoteModels::new(&control));
    let (jobs, inbox) = channel();
    let host = ControlReader {
        receiver,
        jobs,
        control: control.clone(),
        instances: instances.clone(),
        forwarder,
    };
    let reader = std::thread::Builder::new().name("control".into()).spawn(move || host.run());
    if let Err(e) = reader {
        eprintln!("trtserver plugin-host: no thread could be started: {e}");
        return ExitCode::from(1);
    }
    let low_priority = started_by_load.then(LowPriority::begin).flatten();
    MainThread::new(control, instances, forwarder, low_priority).run(&inbox)
}

/// Takes the control connection from standard input, and replaces that with `/dev/null`.
fn connection() -> std::result::Result<UnixStream, String> {
    let input = std::io::stdin();
    match rustix::net::sockopt::socket_domain(&input) {
        Ok(AddressFamily::UNIX) => {}
        Ok(_) | Err(rustix::io::Errno::NOTSOCK) => {
            return Err("standard input is not a connection to a server".into());
        }
        Err(e) => return Err(format!("standard input cannot be used: {e}")),
    }
    let failed = |what: &'static str| move |e: std::io::Error| format!("{what}: {e}");
    let socket = rustix::io::fcntl_dupfd_cloexec(&input, 3)
        .map_err(|e| failed("standard input cannot be used")(e.into()))?;
    let null = std::fs::File::open("/dev/null").map_err(failed("/dev/null cannot be opened"))?;
    rustix::stdio::dup2_stdin(null)
        .map_err(|e| failed("standard input cannot be replaced")(e.into()))?;
    // If the host exited before this, the first read finds the connection closed.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|e| failed("the parent-death signal cannot be set")(e.into()))?;
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        // A handler rather than SIG_IGN, which programs started by the backend would inherit.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(failed("signals cannot be ignored"))?;
    }
    Ok(UnixStream::from(socket))
}

/// Raises this process's OOM score: when memory is exhausted, the system kills a child, which is
/// restarted, before the server with all of its models. Raising it needs no privilege.
fn prefer_in_oom() -> std::io::Result<()> {
    let path = "/proc/self/oom_score_adj";
    let score: i32 = std::fs::read_to_string(path)?.trim().parse().unwrap_or(0);
    std::fs::write(path, (score + OOM_SCORE).min(1000).to_string())
}
