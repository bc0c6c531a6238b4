//! The child process: `trtserver plugin-host`, started by the server for an isolated model.
//!
//! The main thread runs slow jobs one after another: loading the library, opening backend and model, closing. A second
//! thread reads the control connection, so that log levels, cancellations and the end of the host are handled at once.
//! Each instance has a thread of its own, as in the server.
//!
//! The system kills the child when the **thread** that started it ends, so the host starts it from its supervisor
//! thread. Signals that are sent to the whole process group or service are ignored: the host closes the child.

mod control; // sends control messages
mod instance; // the thread of an instance
mod log; // forwards log records
mod metrics; // forwards metrics
mod model; // decodes and opens the model
mod requests; // decodes requests
mod responses; // sends responses

use super::messages::{
    BackendInfo, ControlRequest, ControlResponse, Handshake, InstanceFacts, ModelFacts, Patch,
    control_request,
};
use super::wire::{Received, Receiver, split};
use crate::arena::{Arena, Reader};
use crate::error::{Error, Result};
use crate::plugin::Isolation;
use crate::plugin::backend::Backend;
use crate::plugin::host_api::set_isolated;
use crate::request::buffer;
use control::Control;
use instance::Instances;
use model::OpenModel;
use rustix::net::AddressFamily;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver as Inbox, Sender as Jobs, channel};

/// Added to the OOM score that the child inherits, of -1000 to 1000.
const OOM_SCORE: i32 = 500;

/// Serves the host at the other end of standard input until it closes the connection.
pub fn run() -> ExitCode {
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
    let (sender, receiver) = split(socket);
    let control = Arc::new(Control::new(sender));
    log::start(&control);
    if let Err(e) = metrics::start(&control) {
        eprintln!("trtserver plugin-host: {e}");
        return ExitCode::from(1);
    }
    set_isolated();
    let instances = Arc::new(Instances::default());
    let (jobs, inbox) = channel();
    let host =
        ControlReader { receiver, jobs, control: control.clone(), instances: instances.clone() };
    let reader = std::thread::Builder::new().name("control".into()).spawn(move || host.run());
    if let Err(e) = reader {
        eprintln!("trtserver plugin-host: no thread could be started: {e}");
        return ExitCode::from(1);
    }
    MainThread {
        control,
        instances,
        handshake: None,
        backend: None,
        model_requested: false,
        model: None,
    }
    .run(&inbox)
}

/// Takes the control connection from standard input, and replaces that with `/dev/null`.
fn connection() -> std::result::Result<UnixStream, String> {
    let input = std::io::stdin();
    match rustix::net::sockopt::socket_domain(&input) {
        Ok(AddressFamily::UNIX) => {}
        Ok(_) | Err(rustix::io::Errno::NOTSOCK) => {
            return Err("standard input is no connection to a server".into());
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

/// Raises this process's OOM score: when memory is exhausted, the system kills a child, which is restarted, before the
/// server with all of its models. Raising it needs no privilege.
fn prefer_in_oom() -> std::io::Result<()> {
    let path = "/proc/self/oom_score_adj";
    let score: i32 = std::fs::read_to_string(path)?.trim().parse().unwrap_or(0);
    std::fs::write(path, (score + OOM_SCORE).min(1000).to_string())
}

/// A job for the main thread.
struct Job {
    number: u64,
    kind: JobKind,
}

enum JobKind {
    Handshake(Handshake),
    Describe,
    OpenBackend,
    Complete(ModelFacts),
    OpenModel(ModelFacts, [Option<OwnedFd>; 2]),
    OpenInstance(InstanceFacts, Option<OwnedFd>),
    Close,
}

/// The thread that reads the control connection.
struct ControlReader {
    receiver: Receiver,
    jobs: Jobs<Job>,
    control: Arc<Control>,
    instances: Arc<Instances>,
}

impl ControlReader {
    fn run(mut self) {
        loop {
            match self.receiver.receive::<ControlRequest>() {
                Ok(Received::Message(request)) => self.handle(request),
                Ok(Received::TimedOut) => {}
                Ok(Received::Closed) if self.control.is_ending() => return,
                Ok(Received::Closed) => control::exit_without_host(),
                Err(e) => control::exit_on_violation(&e),
            }
        }
    }

    fn handle(&mut self, ControlRequest { number, kind }: ControlRequest) {
        let kind = match kind {
            Some(control_request::Kind::LogLevel(level)) => return log::set_level(level),
            Some(control_request::Kind::Cancel(cancel)) => {
                return self.instances.cancel(cancel.ordinal, cancel.key);
            }
            Some(control_request::Kind::Handshake(hello)) => JobKind::Handshake(hello),
            Some(control_request::Kind::Describe(_)) => JobKind::Describe,
            Some(control_request::Kind::OpenBackend(_)) => JobKind::OpenBackend,
            Some(control_request::Kind::Complete(facts)) => JobKind::Complete(facts),
            Some(control_request::Kind::OpenModel(facts)) => {
                JobKind::OpenModel(facts, [self.receiver.file(), self.receiver.file()])
            }
            Some(control_request::Kind::OpenInstance(facts)) => {
                JobKind::OpenInstance(facts, self.receiver.file())
            }
            Some(control_request::Kind::Close(_)) => JobKind::Close,
            None => {
                let error = Error::unsupported("the control request is unknown");
                return self.control.respond(number, Err(error));
            }
        };
        // Fails only when the main thread has ended, and the process with it.
        let _ = self.jobs.send(Job { number, kind });
    }
}

/// The main thread, and what it has opened so far.
struct MainThread {
    control: Arc<Control>,
    instances: Arc<Instances>,
    handshake: Option<Handshake>,
    backend: Option<Arc<Backend>>,
    /// The host has asked to open a model.
    model_requested: bool,
    model: Option<Arc<OpenModel>>,
}

impl MainThread {
    fn run(mut self, inbox: &Inbox<Job>) -> ExitCode {
        // The reader never drops its end: it ends the process.
        while let Ok(Job { number, kind }) = inbox.recv() {
            let result = match kind {
                JobKind::Handshake(handshake) => {
                    log::set_level(handshake.log_level);
                    self.handshake = Some(handshake);
                    Ok(ControlResponse::default())
                }
                JobKind::Describe => self.describe(),
                JobKind::OpenBackend => self.open_backend(),
                JobKind::Complete(facts) => self.complete(&facts),
                JobKind::OpenModel(facts, files) => self.open_model(&facts, files),
                JobKind::OpenInstance(facts, file) => match self.open_instance(number, facts, file)
                {
                    // Its thread responds.
                    Ok(()) => continue,
                    Err(e) => Err(e),
                },
                JobKind::Close => {
                    self.close();
                    self.control.respond_last(number);
                    return ExitCode::SUCCESS;
                }
            };
            self.control.respond(number, result);
        }
        ExitCode::FAILURE
    }

    fn backend(&mut self) -> Result<Arc<Backend>> {
        if let Some(backend) = &self.backend {
            return Ok(Arc::clone(backend));
        }
        let Some(handshake) = &self.handshake else {
            return Err(Error::internal("the host sent no handshake"));
        };
        let backend =
            Backend::load_locally(handshake.file.clone().into(), handshake.settings.clone())?;
        Ok(Arc::clone(self.backend.insert(Arc::new(backend))))
    }

    fn describe(&mut self) -> Result<ControlResponse> {
        let backend = self.backend()?;
        let facts = &backend.facts;
        let info = BackendInfo {
            name: facts.name.clone(),
            version: facts.version.clone(),
            platforms: facts.platforms.iter().flat_map(|(p, f)| [p.clone(), f.clone()]).collect(),
            flags: facts.flags,
            max_in_flight: facts.max_in_flight as u64,
            align: facts.align as u64,
            stack_bytes: facts.stack_bytes as u64,
            preferred: facts.preferred.iter().flat_map(|(kind, n)| [*kind, *n]).collect(),
            abi_major: facts.abi.0,
            abi_minor: facts.abi.1,
            runtime: facts.runtime.clone(),
        };
        Ok(ControlResponse { backend: Some(info), ..ControlResponse::default() })
    }

    fn open_backend(&mut self) -> Result<ControlResponse> {
        self.backend()?.open_ahead(Isolation::None, 0)?;
        Ok(ControlResponse::default())
    }

    fn complete(&mut self, facts: &ModelFacts) -> Result<ControlResponse> {
        let backend = self.backend()?;
        let patch = model::Facts::new(facts)?.with(|facts| backend.complete_locally(facts))?;
        let patch = patch.map(|p| Patch { format: p.format, data: p.data });
        Ok(ControlResponse { patch, ..ControlResponse::default() })
    }

    fn open_model(
        &mut self,
        facts: &ModelFacts,
        files: [Option<OwnedFd>; 2],
    ) -> Result<ControlResponse> {
        // Once, also if it fails: the allocator of this process uses the arena of that model.
        if std::mem::replace(&mut self.model_requested, true) {
            return Err(Error::internal("this process already has a model"));
        }
        let [Some(inputs), Some(outputs)] = files else {
            return Err(Error::internal("the host sent no shared memory with the model"));
        };
        let reader = Reader::new(&inputs)?;
        let arena = Arena::over_file(outputs)?;
        // Before the backend allocates anything.
        buffer::use_arena(Arc::clone(&arena));
        let backend = self.backend()?;
        self.model = Some(Arc::new(OpenModel::new(&backend, facts, reader, arena)?));
        Ok(ControlResponse::default())
    }

    fn open_instance(
        &mut self,
        number: u64,
        facts: InstanceFacts,
        file: Option<OwnedFd>,
    ) -> Result<()> {
        let Some(model) = &self.model else {
            return Err(Error::internal("the model of the instance is not open"));
        };
        let Some(file) = file else {
            return Err(Error::internal("the host sent no connection with the instance"));
        };
        self.instances.start(model, facts, file, &self.control, number)
    }

    /// Closes everything in reverse order of opening. The host enforces the deadline.
    fn close(&mut self) {
        self.instances.close();
        self.model = None;
        self.backend = None;
        metrics::flush();
    }
}
