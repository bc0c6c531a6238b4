//! An instance's thread: opens the instance, executes what comes over its work connection, and closes it.

use super::control::{Control, confused};
use super::model::Opened;
use super::requests::request;
use super::responses::Link;
use crate::clock::now_ns;
use crate::device::Streams;
use crate::error::{Error, Result};
use crate::plugin::isolated::messages::{self, Batch, Done};
use crate::plugin::isolated::wire::{Received, Receiver, halves};
use crate::plugin::model::{Instance, LocalInstance};
use crate::plugin::{FrameHold, InstanceFacts, Runner};
use crate::request::InferRequest;
use crate::stats::{Execution, OutstandingExecutions};
use crate::sync::{Mutex, MutexGuard};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use trtserver_plugin_api::abi::descriptors::instance_kind;

/// What a caller who waits for each answer takes to send the next request: looking out for so long spares the wake-up
/// of this thread. Where it is in vain, it is left alone for a while (`Receiver`).
const SPIN: Duration = Duration::from_micros(200);

/// All instances of the process.
#[derive(Default)]
pub struct Instances(Mutex<Vec<Running>>);

struct Running {
    ordinal: u32,
    link: Arc<Link>,
    /// To tell the thread that nothing follows.
    socket: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Instances {
    /// Starts an instance, whose thread answers `number` when it is open.
    ///
    /// # Errors
    /// There is no thread or no connection; then nobody has answered.
    pub fn start(
        &self,
        model: &Arc<Opened>,
        facts: messages::InstanceFacts,
        file: OwnedFd,
        control: &Arc<Control>,
        number: u64,
    ) -> Result<()> {
        let failed = |e| Error::internal(format!("instance {}: {e}", facts.name));
        let socket = UnixStream::from(file);
        let (sender, receiver) = halves(socket.try_clone().map_err(failed)?);
        let link = Link::new(sender, &model.arena, &model.signature);
        let name = format!("{}/{}#{}", model.signature.model, model.version, facts.ordinal);
        let ordinal = facts.ordinal;
        let stack = model.model.backend.facts.stack_bytes;
        let thread = std::thread::Builder::new().name(name).stack_size(stack);
        let worker =
            Worker { model: Arc::clone(model), link: Arc::clone(&link), facts: facts.clone() };
        let control = Arc::clone(control);
        let thread =
            thread.spawn(move || worker.run(receiver, &control, number)).map_err(failed)?;
        let mut all = self.lock();
        all.retain(|running| !running.thread.as_ref().is_some_and(JoinHandle::is_finished));
        all.push(Running { ordinal, link, socket, thread: Some(thread) });
        Ok(())
    }

    /// Nobody waits for call `key` of instance `ordinal` any more.
    pub fn cancel(&self, ordinal: u32, key: u64) {
        let all = self.lock();
        let link = all.iter().rfind(|r| r.ordinal == ordinal).map(|r| Arc::clone(&r.link));
        drop(all);
        if let Some(link) = link {
            link.cancel(key);
        }
    }

    /// Lets each finish what it has, and waits for that.
    pub fn close(&self) {
        // They are found until they have ended, so that cancellations reach them.
        for running in &*self.lock() {
            // What has come already is still read.
            let _ = running.socket.shutdown(Shutdown::Read);
        }
        while let Some(thread) = self.next() {
            // A panic was told on standard error.
            let _ = thread.join();
        }
    }

    /// The thread of an instance that has not been waited for.
    fn next(&self) -> Option<JoinHandle<()>> {
        self.lock().iter_mut().find_map(|running| running.thread.take())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        self.0.lock()
    }
}

/// What the thread works with.
struct Worker {
    model: Arc<Opened>,
    link: Arc<Link>,
    facts: messages::InstanceFacts,
}

impl Worker {
    fn run(self, mut receiver: Receiver, control: &Control, number: u64) {
        // Whatever ends this thread, the host learns that nothing follows.
        let _end = End(Arc::clone(&self.link));
        let opened = catch_unwind(AssertUnwindSafe(|| self.open())).unwrap_or_else(|_| {
            Err(Error::internal(format!(
                "instance {}: the server failed while it opened the instance; see its log",
                self.facts.name
            )))
        });
        // The streams outlive the instance that works on them.
        let (_streams, mut instance) = match opened {
            Ok(opened) => opened,
            Err(e) => return control.done(number, Err(e)),
        };
        control.done(number, Ok(Done::default()));
        let in_flight = Arc::new(OutstandingExecutions::default());
        let mut hold = FrameHold::new();
        let mut requests = Vec::new();
        receiver.set_spin(SPIN);
        loop {
            let batch = match receiver.receive::<Batch>() {
                Ok(Received::Message(batch)) => batch,
                Ok(Received::Silence) => continue,
                Ok(Received::Closed) => break,
                Err(e) => confused(&e),
            };
            let execute = || {
                self.execute(&mut instance, &mut hold, batch, &mut requests, &in_flight);
            };
            if catch_unwind(AssertUnwindSafe(execute)).is_err() {
                self.runner().fault(&mut hold, &mut requests);
            }
        }
        // For ever, if the plugin never answers: the host ends the process when it has waited for long enough.
        in_flight.wait_at_most(0, None);
    }

    fn open(&self) -> Result<(Streams, LocalInstance)> {
        let Self { model, facts, .. } = self;
        // First of all, because threads that the plugin starts inherit it. The host's limits are this process's, too:
        // what was refused there is refused here.
        let _ = rustix::process::setpriority_process(None, facts.nice);
        let gpu = facts.kind == instance_kind::GPU;
        let streams = Streams::for_instance(gpu, facts.device, model.priority)?;
        let facts = InstanceFacts {
            name: &facts.name,
            kind: facts.kind,
            ordinal: facts.ordinal,
            device: facts.device,
            threads: facts.threads,
            max_rows: facts.max_rows,
            profiles: &facts.profiles,
            streams: streams.handles(),
            nice: facts.nice,
            drain: Duration::MAX,
        };
        match Instance::open(&model.model, &facts)? {
            Instance::Here(instance) => Ok((streams, instance)),
            Instance::Apart(_) => Err(Error::internal("the model is in yet another process")),
        }
    }

    fn execute(
        &self,
        instance: &mut LocalInstance,
        hold: &mut FrameHold,
        Batch { id, calls }: Batch,
        requests: &mut Vec<InferRequest>,
        in_flight: &Arc<OutstandingExecutions>,
    ) {
        if calls.is_empty() {
            return;
        }
        let rows = calls.iter().map(|call| call.batch).fold(0, u32::saturating_add);
        let ordinal = self.facts.ordinal as usize;
        let execution = Execution::new(ordinal, calls.len() as u32, rows, now_ns(), in_flight);
        let execution = Arc::new(execution);
        for call in calls {
            let key = call.key;
            match request(call, &self.model, &self.link, &execution) {
                Ok(request) => requests.push(request),
                Err(e) => {
                    tracing::error!("instance {}: {e}", self.facts.name);
                    self.link.refuse(key, &e);
                    execution.request_finished();
                }
            }
        }
        if !requests.is_empty() {
            self.runner().execute(instance, hold, id, requests, &execution);
        }
    }

    fn runner(&self) -> Runner<'_> {
        let (signature, names) = (&self.model.signature, &self.model.names);
        Runner { name: &self.facts.name, signature, names }
    }
}

/// See [`Worker::run`].
struct End(Arc<Link>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}
