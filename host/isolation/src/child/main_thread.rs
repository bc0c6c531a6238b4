//! The main thread: runs jobs one after another, and owns the backend and the model.

use super::control::Control;
use super::control_reader::{JobKind, MainThreadJob};
use super::instance::Instances;
use super::log;
use super::metrics::Forwarder;
use super::model::{self, OpenModel};
use crate::messages::{
    BackendInfo, ControlResponse, DeviceFacts, Handshake, InstanceFacts, ModelFacts, PatchMessage,
    ProbeFacts,
};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use trtserver_base::arena::{Arena, ArenaReader};
use trtserver_base::error::{Error, Result};
use trtserver_device::DeviceSettings;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::load_priority::LowPriority;
use trtserver_plugin_host::plugin_file::{AdaptedLibrary, PluginFile};
use trtserver_plugin_host::{CancelFlag, Isolation};
use trtserver_request::buffer;

/// Interval at which the end of the last streams is looked at.
const STREAMS_INTERVAL: Duration = Duration::from_millis(1);

/// The main thread, and what it has opened so far.
pub struct MainThread {
    control: Arc<Control>,
    instances: Arc<Instances>,
    /// Sends the last values of metrics.
    forwarder: &'static Forwarder,
    handshake: Option<Handshake>,
    backend: Option<Arc<PluginBackend>>,
    /// The host has asked to open a model.
    model_requested: bool,
    model: Option<Arc<OpenModel>>,
    /// Until the model is open, if other models serve meanwhile.
    low_priority: Option<LowPriority>,
}

impl MainThread {
    pub fn new(
        control: Arc<Control>,
        instances: Arc<Instances>,
        forwarder: &'static Forwarder,
        low_priority: Option<LowPriority>,
    ) -> Self {
        Self {
            control,
            instances,
            forwarder,
            handshake: None,
            backend: None,
            model_requested: false,
            model: None,
            low_priority,
        }
    }

    pub fn run(mut self, inbox: &Receiver<MainThreadJob>) -> ExitCode {
        // The reader never drops its end: it ends the process.
        while let Ok(MainThreadJob { number, kind }) = inbox.recv() {
            let result = match kind {
                JobKind::Handshake(handshake) => {
                    log::set_level(handshake.log_level);
                    let DeviceFacts { disabled, pinned_pool, pools } = handshake.devices.clone();
                    trtserver_device::configure_devices(DeviceSettings {
                        disabled,
                        pinned_pool,
                        pools,
                    });
                    self.handshake = Some(handshake);
                    Ok(ControlResponse::default())
                }
                JobKind::Describe => self.describe(),
                JobKind::OpenBackend => self.open_backend(),
                JobKind::Complete(facts) => self.complete(&facts),
                JobKind::Probe(facts) => self.probe(&facts),
                JobKind::OpenModel(facts, files) => self.open_model(&facts, files),
                JobKind::OpenInstance(facts, files) => {
                    match self.open_instance(number, facts, files) {
                        // Its thread responds.
                        Ok(()) => continue,
                        Err(e) => Err(e),
                    }
                }
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

    fn backend(&mut self) -> Result<Arc<PluginBackend>> {
        if let Some(backend) = &self.backend {
            return Ok(Arc::clone(backend));
        }
        let Some(handshake) = &self.handshake else {
            return Err(Error::internal("the host sent no handshake"));
        };
        let adapted = handshake.adapted.as_ref().map(|a| AdaptedLibrary {
            adapter: a.adapter.clone(),
            name: a.name.clone(),
            file: a.file.clone().into(),
            default_file: None,
        });
        let file = PluginFile { library: handshake.file.clone().into(), adapted };
        let backend = PluginBackend::load_locally(file, handshake.settings.clone())?;
        Ok(Arc::clone(self.backend.insert(Arc::new(backend))))
    }

    fn describe(&mut self) -> Result<ControlResponse> {
        let backend = self.backend()?;
        let (facts, open) = (&backend.facts, backend.open_facts());
        let info = BackendInfo {
            name: facts.name.clone(),
            version: facts.version.clone(),
            platforms: facts.platforms.iter().flat_map(|(p, f)| [p.clone(), f.clone()]).collect(),
            flags: facts.flags,
            max_in_flight: facts.max_in_flight as u64,
            decoupled_max_in_flight: facts.decoupled_max_in_flight.unwrap_or_default() as u64,
            gpu_max_in_flight: facts.gpu_max_in_flight as u64,
            align: facts.align as u64,
            stack_bytes: facts.stack_bytes as u64,
            preferred: open.preferred.iter().flat_map(|(kind, n)| [*kind, *n]).collect(),
            instance_kinds: open.instance_kinds,
            abi_major: facts.abi.0,
            abi_minor: facts.abi.1,
            runtime: open.runtime,
        };
        Ok(ControlResponse { backend: Some(info), ..ControlResponse::default() })
    }

    fn open_backend(&mut self) -> Result<ControlResponse> {
        self.backend()?.open_ahead(Isolation::None, 0, &CancelFlag::default())?;
        self.describe()
    }

    fn complete(&mut self, facts: &ModelFacts) -> Result<ControlResponse> {
        let backend = self.backend()?;
        let completed = model::Facts::new(facts)?.with(|facts| backend.complete_locally(facts));
        let patch = completed?.patch.take();
        let patch = patch.map(|p| PatchMessage { format: p.format, data: p.data });
        Ok(ControlResponse { patch, ..ControlResponse::default() })
    }

    fn probe(&mut self, facts: &ProbeFacts) -> Result<ControlResponse> {
        let entries: Vec<_> = facts.entries.iter().map(|e| (e.name.clone(), e.is_dir)).collect();
        let entry = self.backend()?.probe_locally(&trtserver_plugin_host::ProbeFacts {
            model: &facts.model,
            version: facts.version,
            version_dir: Path::new(&facts.version_dir),
            platform: &facts.platform,
            default_file: &facts.default_file,
            entries: &entries,
        })?;
        Ok(ControlResponse { entry, ..ControlResponse::default() })
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
        let reader = ArenaReader::new(&inputs)?;
        let arena = Arena::over_file(outputs)?;
        // Before the backend allocates anything.
        buffer::use_arena(Arc::clone(&arena));
        let backend = self.backend()?;
        self.model = Some(Arc::new(OpenModel::new(&backend, facts, reader, arena)?));
        self.low_priority = None;
        Ok(ControlResponse::default())
    }

    fn open_instance(
        &mut self,
        number: u64,
        facts: InstanceFacts,
        files: [Option<OwnedFd>; 2],
    ) -> Result<()> {
        let Some(model) = &self.model else {
            return Err(Error::internal("the model of the instance is not open"));
        };
        let [Some(file), Some(rings)] = files else {
            return Err(Error::internal("the host sent no connection with the instance"));
        };
        self.instances.start(model, facts, (file, rings), &self.control, number)
    }

    /// Closes everything in reverse order of opening. The host enforces the deadline.
    fn close(&mut self) {
        self.instances.close();
        self.model = None;
        self.backend = None;
        // Their callbacks run on other threads.
        while trtserver_device::open_streams() > 0 {
            std::thread::sleep(STREAMS_INTERVAL);
        }
        self.forwarder.send();
    }
}
