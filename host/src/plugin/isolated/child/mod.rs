//! The process itself: `trtserver plugin-host`, started by a server and by nobody else.
//!
//! Its first thread does one after another what may take long: loading the library, opening backend and model,
//! closing. A second one reads the control connection meanwhile, so that levels, cancellations and the end of the host
//! are seen at once. Each instance has a thread of its own, as in a server's process.
//!
//! The system kills the process when the **thread** that started it ends, so the host starts it from one that lives as
//! long as the host. Signals that are meant for the host and reach the whole group or service are ignored: the host
//! says when it is over.

mod control; // what is told besides
mod instance; // an instance's thread
mod log; // log records, for the host's log
mod metrics; // metrics, for the host's page
mod model; // the messages' facts as the backend wants them
mod requests;
mod responses; // what the plugin says to a call // calls as requests

use super::messages::{About, Ask, Done, Hello, InstanceFacts, ModelFacts, Patch, ask};
use super::wire::{Received, Receiver, halves};
use crate::arena::{Arena, Reader};
use crate::error::{Error, Result};
use crate::plugin::backend::Backend;
use crate::plugin::host_api::set_isolated;
use crate::request::buffer;
use control::Control;
use instance::Instances;
use model::Opened;
use rustix::net::AddressFamily;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver as Inbox, Sender as Jobs, channel};

/// Serves the host at the other end of standard input until it closes the connection.
pub fn run() -> ExitCode {
    let socket = match connection() {
        Ok(socket) => socket,
        Err(why) => {
            eprintln!(
                "trtserver plugin-host: {why}.\nA server starts this command for the models of a backend that has \
                 'isolation=process': it runs the backend apart from the server, which it hears from over standard \
                 input. Nothing can be done with it by hand."
            );
            return ExitCode::from(2);
        }
    };
    let (sender, receiver) = halves(socket);
    let control = Arc::new(Control::new(sender));
    log::start(&control);
    if let Err(e) = metrics::start(&control) {
        eprintln!("trtserver plugin-host: {e}");
        return ExitCode::from(1);
    }
    set_isolated();
    let instances = Arc::new(Instances::default());
    let (jobs, inbox) = channel();
    let host = Listening { receiver, jobs, control: control.clone(), instances: instances.clone() };
    let listening = std::thread::Builder::new().name("control".into()).spawn(move || host.listen());
    if let Err(e) = listening {
        eprintln!("trtserver plugin-host: no thread could be started: {e}");
        return ExitCode::from(1);
    }
    Work { control, instances, hello: None, backend: None, asked: false, model: None }.run(&inbox)
}

/// The host's connection, with nothing left on standard input that a plugin could read.
fn connection() -> std::result::Result<UnixStream, String> {
    let input = std::io::stdin();
    match rustix::net::sockopt::socket_domain(&input) {
        Ok(AddressFamily::UNIX) => {}
        Ok(_) | Err(rustix::io::Errno::NOTSOCK) => {
            return Err("standard input is no connection to a server".into());
        }
        Err(e) => return Err(format!("standard input cannot be used: {e}")),
    }
    let said = |what: &'static str| move |e: std::io::Error| format!("{what}: {e}");
    let socket = rustix::io::fcntl_dupfd_cloexec(&input, 3)
        .map_err(|e| said("standard input cannot be used")(e.into()))?;
    let null = std::fs::File::open("/dev/null").map_err(said("/dev/null cannot be opened"))?;
    rustix::stdio::dup2_stdin(null)
        .map_err(|e| said("standard input cannot be replaced")(e.into()))?;
    // A host that ended before this closed the connection, which the first reading finds.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|e| said("the end of the server cannot be heeded")(e.into()))?;
    for signal in [SIGINT, SIGTERM] {
        // A handler rather than "ignored", which programs that the plugin starts would inherit.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(said("signals cannot be ignored"))?;
    }
    Ok(UnixStream::from(socket))
}

/// Something to do in its turn, with the files that came along.
struct Job {
    number: u64,
    what: What,
}

enum What {
    Hello(Hello),
    Describe,
    Complete(ModelFacts),
    OpenModel(ModelFacts, [Option<OwnedFd>; 2]),
    OpenInstance(InstanceFacts, Option<OwnedFd>),
    Close,
}

/// The thread that reads the control connection.
struct Listening {
    receiver: Receiver,
    jobs: Jobs<Job>,
    control: Arc<Control>,
    instances: Arc<Instances>,
}

impl Listening {
    fn listen(mut self) {
        loop {
            match self.receiver.receive::<Ask>() {
                Ok(Received::Message(ask)) => self.take(ask),
                Ok(Received::Silence) => {}
                Ok(Received::Closed) if self.control.is_ending() => return,
                Ok(Received::Closed) => control::gone(),
                Err(e) => control::confused(&e),
            }
        }
    }

    fn take(&mut self, Ask { number, what }: Ask) {
        let what = match what {
            Some(ask::What::LogLevel(level)) => return log::set_level(level),
            Some(ask::What::Cancel(cancel)) => {
                return self.instances.cancel(cancel.ordinal, cancel.key);
            }
            Some(ask::What::Hello(hello)) => What::Hello(hello),
            Some(ask::What::Describe(_)) => What::Describe,
            Some(ask::What::Complete(facts)) => What::Complete(facts),
            Some(ask::What::OpenModel(facts)) => {
                What::OpenModel(facts, [self.receiver.file(), self.receiver.file()])
            }
            Some(ask::What::OpenInstance(facts)) => What::OpenInstance(facts, self.receiver.file()),
            Some(ask::What::Close(_)) => What::Close,
            None => {
                let error = Error::unsupported("the host asked for something that is not known");
                return self.control.done(number, Err(error));
            }
        };
        // Refused only when the first thread has ended, and the process with it.
        let _ = self.jobs.send(Job { number, what });
    }
}

/// What the first thread has made so far.
struct Work {
    control: Arc<Control>,
    instances: Arc<Instances>,
    hello: Option<Hello>,
    backend: Option<Arc<Backend>>,
    /// A model was to be opened.
    asked: bool,
    model: Option<Arc<Opened>>,
}

impl Work {
    fn run(mut self, inbox: &Inbox<Job>) -> ExitCode {
        // The other thread ends the process, or never drops its end.
        while let Ok(Job { number, what }) = inbox.recv() {
            let done = match what {
                What::Hello(hello) => {
                    log::set_level(hello.log_level);
                    self.hello = Some(hello);
                    Ok(Done::default())
                }
                What::Describe => self.describe(),
                What::Complete(facts) => self.complete(&facts),
                What::OpenModel(facts, files) => self.open_model(&facts, files),
                What::OpenInstance(facts, file) => match self.open_instance(number, facts, file) {
                    // Its thread answers.
                    Ok(()) => continue,
                    Err(e) => Err(e),
                },
                What::Close => {
                    self.close();
                    self.control.end(number);
                    return ExitCode::SUCCESS;
                }
            };
            self.control.done(number, done);
        }
        ExitCode::FAILURE
    }

    fn backend(&mut self) -> Result<Arc<Backend>> {
        if let Some(backend) = &self.backend {
            return Ok(Arc::clone(backend));
        }
        let Some(hello) = &self.hello else {
            return Err(Error::internal("the host did not say which backend it wants"));
        };
        let backend = Backend::here(hello.file.clone().into(), hello.settings.clone())?;
        Ok(Arc::clone(self.backend.insert(Arc::new(backend))))
    }

    fn describe(&mut self) -> Result<Done> {
        let backend = self.backend()?;
        let facts = &backend.facts;
        let about = About {
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
        Ok(Done { about: Some(about), ..Done::default() })
    }

    fn complete(&mut self, facts: &ModelFacts) -> Result<Done> {
        let backend = self.backend()?;
        let patch = model::Facts::new(facts)?.with(|facts| backend.complete_here(facts))?;
        let patch = patch.map(|p| Patch { format: p.format, data: p.data });
        Ok(Done { patch, ..Done::default() })
    }

    fn open_model(&mut self, facts: &ModelFacts, files: [Option<OwnedFd>; 2]) -> Result<Done> {
        // Once, also if it fails: the memory of the process is that of this one model.
        if std::mem::replace(&mut self.asked, true) {
            return Err(Error::internal("the process has been given a model already"));
        }
        let [Some(inputs), Some(outputs)] = files else {
            return Err(Error::internal("the host sent no shared memory with the model"));
        };
        let reader = Reader::new(&inputs)?;
        let arena = Arena::over_file(outputs)?;
        // Before the plugin allocates anything.
        buffer::use_arena(Arc::clone(&arena));
        let backend = self.backend()?;
        self.model = Some(Arc::new(Opened::new(&backend, facts, reader, arena)?));
        Ok(Done::default())
    }

    fn open_instance(
        &mut self,
        number: u64,
        facts: InstanceFacts,
        file: Option<OwnedFd>,
    ) -> Result<()> {
        let Some(model) = &self.model else {
            return Err(Error::internal("the host wants an instance of a model that is not open"));
        };
        let Some(file) = file else {
            return Err(Error::internal("the host sent no connection with the instance"));
        };
        self.instances.start(model, facts, file, &self.control, number)
    }

    /// Everything in the reverse order of opening. How long instances may take for what they have is the host's affair.
    fn close(&mut self) {
        self.instances.close();
        self.model = None;
        self.backend = None;
        metrics::flush();
    }
}
