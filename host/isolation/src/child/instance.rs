//! The thread of an instance: opens it, executes the batches from its work connection, closes it.

use super::control::{Control, exit_on_violation, exit_without_device};
use super::model::OpenModel;
use super::regions::Regions;
use super::requested_exit::ProcessEnd;
use super::requests::decode_request;
use super::responses::ResponseSender;
use crate::facts::{batch_sizes_message, host_policy};
use crate::messages;
use crate::messages::{ControlResponse, ExecuteBatch};
use crate::wire::ReceiveOutcome;
use crate::work_channel::{ChannelEnd, WorkReceiver};
use parking_lot::{Mutex, MutexGuard};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::{BatchExecution, OutstandingExecutions};
use trtserver_device::{InstanceStreams, LostWatch};
use trtserver_plugin_api::abi::descriptors::instance_kind;
use trtserver_plugin_host::model::{BackendInstance, LocalInstance};
use trtserver_plugin_host::{FrameHold, InstanceFacts, Runner};
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_request::InferRequest;

/// Poll time: a client that waits for each response sends the next request within it, which saves
/// waking this thread. `Spin` stops polling for a while where it is in vain.
const SPIN: Duration = Duration::from_micros(200);

/// All instances of the process.
#[derive(Default)]
pub struct Instances {
    open: Mutex<Vec<OpenInstance>>,
    pub end: Arc<ProcessEnd>,
}

struct OpenInstance {
    ordinal: u32,
    responses: Arc<ResponseSender>,
    /// Shut down to end the thread.
    socket: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Instances {
    /// Starts an instance, whose thread responds to control request `number`.
    ///
    /// # Errors
    /// There is no thread or no connection; no response was sent then.
    pub fn start(
        &self,
        model: &Arc<OpenModel>,
        facts: messages::InstanceFacts,
        (file, rings): (OwnedFd, OwnedFd),
        control: &Arc<Control>,
        number: u64,
    ) -> Result<()> {
        let failed = |e| Error::internal(format!("instance {}: {e}", facts.name));
        let socket = UnixStream::from(file);
        let end = ChannelEnd::other(socket.try_clone().map_err(failed)?, &rings)?;
        let (sender, ring, receiver) = end.split(None)?;
        let receiver = WorkReceiver::new(ring, receiver, SPIN);
        let responses = ResponseSender::new(sender, &model.arena, &model.signature);
        let name = format!("{}/{}#{}", model.signature.model, model.version, facts.ordinal);
        let ordinal = facts.ordinal;
        let stack = model.model.backend.facts.stack_bytes;
        let thread = std::thread::Builder::new().name(name).stack_size(stack);
        let worker = Worker {
            model: Arc::clone(model),
            responses: Arc::clone(&responses),
            facts: facts.clone(),
            end: Arc::clone(&self.end),
        };
        let control = Arc::clone(control);
        let thread =
            thread.spawn(move || worker.run(receiver, &control, number)).map_err(failed)?;
        let mut all = self.lock();
        all.retain(|instance| !instance.thread.as_ref().is_some_and(JoinHandle::is_finished));
        all.push(OpenInstance { ordinal, responses, socket, thread: Some(thread) });
        Ok(())
    }

    /// Cancels request `key` of instance `ordinal`.
    pub fn cancel(&self, ordinal: u32, key: u64) {
        let all = self.lock();
        let found = all.iter().rfind(|i| i.ordinal == ordinal);
        let responses = found.map(|instance| Arc::clone(&instance.responses));
        drop(all);
        if let Some(responses) = responses {
            responses.cancel(key);
        }
    }

    /// Drains and closes all instances.
    pub fn close(&self) {
        // They stay in the list, so that cancellations still reach them.
        for instance in &*self.lock() {
            // Batches that were received already are still read.
            let _ = instance.socket.shutdown(Shutdown::Read);
        }
        while let Some(thread) = self.next_thread() {
            // A panic was reported on standard error.
            let _ = thread.join();
        }
    }

    /// A thread that was not joined yet.
    fn next_thread(&self) -> Option<JoinHandle<()>> {
        self.lock().iter_mut().find_map(|instance| instance.thread.take())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OpenInstance>> {
        self.open.lock()
    }
}

/// The state of the thread.
struct Worker {
    model: Arc<OpenModel>,
    responses: Arc<ResponseSender>,
    facts: messages::InstanceFacts,
    end: Arc<ProcessEnd>,
}

impl Worker {
    fn run(self, mut receiver: WorkReceiver, control: &Control, number: u64) {
        // However this thread ends, the host sees the connection close.
        let _close = CloseOnExit(Arc::clone(&self.responses));
        let opened = catch_unwind(AssertUnwindSafe(|| self.open())).unwrap_or_else(|_| {
            Err(Error::internal(format!(
                "instance {}: the server failed while it opened the instance; see its log",
                self.facts.name
            )))
        });
        // Declared first: the streams outlive the instance that uses them.
        let (gpu, mut instance) = match opened {
            Ok(opened) => opened,
            Err(e) => return control.respond(number, Err(e)),
        };
        let batch_sizes = batch_sizes_message(instance.batch_sizes());
        control.respond(number, Ok(ControlResponse { batch_sizes, ..ControlResponse::default() }));
        let outstanding = Arc::new(OutstandingExecutions::default());
        self.end.register_instance(&self.facts.name, &outstanding);
        let mut hold = FrameHold::new();
        let mut requests = Vec::new();
        let mut regions = Regions::new(gpu.1.gpu().map(|streams| streams.device));
        let gpu_instance = self.facts.kind == instance_kind::GPU;
        let kind = if gpu_instance { Kind::Gpu } else { Kind::Cpu };
        let facts = &self.model.model.backend.facts;
        let max_in_flight = facts.max_in_flight_for(kind, self.model.decoupled);
        loop {
            // The host sends batches ahead. One that was not taken is executed by the next process
            // if this one crashes.
            outstanding.wait_at_most(max_in_flight - 1, None);
            let batch = match receiver.receive_after::<ExecuteBatch>(|| self.end.wait_for_exit()) {
                Ok(ReceiveOutcome::Message(batch)) => batch,
                Ok(ReceiveOutcome::TimedOut) => continue,
                Ok(ReceiveOutcome::Closed) => break,
                Err(e) => exit_on_violation(&e),
            };
            regions.update(&batch, &mut receiver.socket);
            let execute = || {
                let batch = (batch, &regions);
                self.execute(&mut instance, &mut hold, batch, &mut requests, &outstanding);
            };
            if catch_unwind(AssertUnwindSafe(execute)).is_err() {
                self.runner().fail_after_panic(&mut hold, &mut requests);
            }
        }
        // Without a limit: the host kills the process at its deadline.
        outstanding.wait_at_most(0, None);
    }

    fn open(&self) -> Result<((Option<LostWatch>, InstanceStreams), LocalInstance)> {
        let Self { model, facts, .. } = self;
        // Before the backend starts threads, which inherit it: that of a load until the host ends
        // it. It may be refused, as it was in the host, since both processes have the same limits.
        let _ = rustix::process::setpriority_process(None, facts.nice);
        let policy = host_policy(&facts.host_policy, &facts.host_settings)?;
        policy.bind_thread()?;
        let gpu = facts.kind == instance_kind::GPU;
        let streams = InstanceStreams::for_instance(gpu, facts.device, model.priority)?;
        let secondary = facts.secondary_devices.iter();
        let secondary: Vec<_> = secondary.map(|device| (device.kind.clone(), device.id)).collect();
        let ordinal = facts.device;
        let watch = streams.gpu().map(|gpu| {
            gpu.device.context().on_lost(move |reason| exit_without_device(ordinal, reason))
        });
        let facts = InstanceFacts {
            name: &facts.name,
            kind: facts.kind,
            ordinal: facts.ordinal,
            device: facts.device,
            threads: facts.threads,
            max_rows: facts.max_rows,
            profiles: &facts.profiles,
            secondary_devices: &secondary,
            host_policy: &policy,
            load_limit: facts.load_limit,
            streams: streams.clone(),
            nice: facts.nice,
            drain: Duration::MAX,
        };
        match BackendInstance::open(&model.model, &facts)? {
            BackendInstance::Local(instance) => Ok(((watch, streams), instance)),
            BackendInstance::Isolated(_) => {
                Err(Error::internal("the child process opened an isolated model"))
            }
        }
    }

    fn execute(
        &self,
        instance: &mut LocalInstance,
        hold: &mut FrameHold,
        (ExecuteBatch { id, requests: messages, .. }, regions): (ExecuteBatch, &Regions),
        requests: &mut Vec<InferRequest>,
        outstanding: &Arc<OutstandingExecutions>,
    ) {
        if messages.is_empty() {
            return;
        }
        let rows = messages.iter().map(|message| message.batch).fold(0, u32::saturating_add);
        let ordinal = self.facts.ordinal as usize;
        let execution =
            BatchExecution::new(ordinal, messages.len() as u32, rows, now_ns(), outstanding);
        let execution = Arc::new(execution);
        for message in messages {
            let key = message.key;
            match decode_request(message, (&self.model, regions), &self.responses, &execution) {
                Ok(request) => requests.push(request),
                Err(e) => {
                    tracing::error!("instance {}: {e}", self.facts.name);
                    self.responses.refuse(key, &e);
                    execution.request_finished();
                }
            }
        }
        if !requests.is_empty() && self.runner().place_inputs(instance, requests, None) {
            self.runner().execute(instance, hold, id, requests, &execution);
        }
    }

    fn runner(&self) -> Runner<'_> {
        let (signature, names) = (&self.model.signature, &self.model.names);
        Runner { name: &self.facts.name, signature, names }
    }
}

/// Closes the work connection when the thread ends.
struct CloseOnExit(Arc<ResponseSender>);

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}
