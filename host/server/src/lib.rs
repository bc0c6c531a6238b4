//! Builds the parts of the server in order and drains them in reverse. [`router`] picks the
//! frontend of a path.
//!
//! # Process-wide state
//!
//! [`Host`] and the `FrontendContext` of the frontends hold what one server shares; it is passed
//! down, and a unit test makes its own. These statics remain:
//!
//! | static | in `host` | why it is process-wide |
//! |---|---|---|
//! | `LEDGER` | `base/src/ledger/mod.rs` | memory leaves it where it is dropped, which knows its tag alone |
//! | `BUDGETS` | `base/src/budget/mod.rs` | every tensor is drawn from it, also in functions that backends call |
//! | `READ_USAGE` | `base/src/heap.rs` | a function of the C library, looked up once; older ones lack it |
//! | `UPKEEP` | `base/src/upkeep.rs` | dropped memory goes to its timer and thread |
//! | `USED` | `base/src/request_id.rs` | spares each request a look at the thread-local beside it |
//! | `BUFFERS` | `request/src/buffer.rs` | pool and arena of tensors, which are made and dropped everywhere |
//! | `GUARD` | `request/src/shared_memory/guard.rs` | a signal handler gets no other state |
//! | `REPORTED` | `plugin-host/src/crash_report.rs` | a signal handler gets no other state |
//! | `HOST` | `plugin-host/src/host_state.rs` | the C interface passes functions of the host no pointer to it |
//! | `LIBRARIES` | `plugin-host/src/library/mod.rs` | the loader's list of libraries is process-wide |
//! | `PRIORITIES` | `plugin-host/src/load_priority.rs` | thread ids, the server's niceness and the right to one are of the process |
//! | `OWNER` | `plugin-host/src/shared_objects.rs` | the name contains the process id; `main` releases it, whatever is still open |
//! | `DRIVER` | `device/src/driver.rs` | `cuInit` is called once in a process; backends ask for devices through the C interface |
//! | `WORKERS` | `wire/src/decode_workers.rs` | a reference in the future of each request, which is moved several times, would make requests dearer that need no worker |
//! | `FINDINGS` | `tool/src/check/findings.rs` | functions that the checked backend calls report there |
//!
//! Thread-locals and task-locals are caches of a thread or task, or what it does now. Constants
//! (tables of functions, names of entries) are not state.

#![forbid(unsafe_code)]

mod connections;
mod control_calls;
mod cross_origin;
mod descriptor_limit;
mod drain;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod guarded_router;
mod head_check;
mod host;
mod late_repositories;
mod listeners;
mod load;
mod load_service;
mod memory_limit;
pub mod metrics_endpoint;
mod nested;
mod page_endpoint;
pub mod reflection;
pub mod router;
mod rpc_access;
mod server_access;
mod service_socket;
mod signals;
mod start_lines;
mod start_resources;
mod telemetry;

pub use load::{create_loader, default_adapter_dirs, default_backend_dirs, open_repositories};

use connections::ListenerConnections;
use descriptor_limit::raise_descriptor_limit;
pub use host::Host;
use listeners::{Listener, OpenListeners, print_line};
use load::load_at_startup;
use memory_limit::set_memory_limit;
use nested::NestedModels;
use server_access::ServerAccess;
use service_socket::ServiceSocket;
use signals::{FileReload, Signals, TERMINATE};
use start_resources::{StartThreads, check_start_resources};
use std::sync::Arc;
use telemetry::Telemetry;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use trtserver_base::error::{Error, Result};
use trtserver_base::heap;
use trtserver_base::state::{ServerPhase, ServerState};
use trtserver_config::log::LogControl;
use trtserver_config::{ControlMode, ServerSettings};
use trtserver_device::DeviceSettings;
use trtserver_isolation::ProcessLauncher;
use trtserver_load_report::{GpuUtilization, LoadReporter};
use trtserver_metrics::{GpuMetrics, MetricsPage, MetricsSources};
use trtserver_models::ModelTable;
use trtserver_models::lifecycle::StartupReport;
use trtserver_plugin_host::{DEFAULT_STACK, serve_nested, shared_objects};
use trtserver_wire::bind::{BoundListener, SocketFile};
use trtserver_wire::context::FrontendContext;
use trtserver_wire::decode_workers;
use trtserver_wire::threads::{self, RuntimeHandles, ServerRuntimes};
use trtserver_wire::tls::TlsListeners;

/// Threads beside those of the network and of decoding: health, timer, memory that is given back,
/// the load at start and its progress.
const OTHER_THREADS: usize = 6;

/// Runs the server until a signal stops it. Returns the exit status of the process.
pub fn run_server(settings: ServerSettings, log: LogControl, launcher: Arc<ProcessLauncher>) -> u8 {
    heap::configure_heap();
    raise_descriptor_limit();
    let threads = StartThreads {
        net: threads::network_threads(),
        net_stack: DEFAULT_STACK,
        others: decode_workers::worker_count(settings.decode_thread_count)
            + threads::heavy_threads()
            + OTHER_THREADS,
    };
    if let Err(e) = check_start_resources(threads) {
        tracing::error!("{e}");
        return 1;
    }
    let host = match Host::start(&settings, launcher) {
        Ok(host) => host,
        Err(e) => {
            tracing::error!("{e}");
            return 1;
        }
    };
    let runtimes = match ServerRuntimes::start(DEFAULT_STACK) {
        Ok(runtimes) => runtimes,
        Err(e) => {
            tracing::error!("cannot start the network threads: {e}");
            return 1;
        }
    };
    let code = match Server::start(host, settings, log, &runtimes) {
        Ok(server) => {
            let context = Arc::clone(&server.context);
            let code = runtimes.network.block_on(server.serve());
            context.models.remove_copies();
            context.tracer.stop();
            code
        }
        Err(e) => {
            tracing::error!("{e}");
            1
        }
    };
    runtimes.shut_down();
    code
}

/// Must be called before GPUs are looked for.
pub fn configure_devices(settings: &ServerSettings) {
    trtserver_device::configure_devices(DeviceSettings {
        disabled: settings.cpu_only,
        pinned_pool: settings.pinned_pool,
        pools: settings.gpu_pools.clone(),
    });
}

/// A server whose sockets are bound.
struct Server {
    host: Arc<Host>,
    context: Arc<FrontendContext>,
    connections: ListenerConnections,
    runtimes: RuntimeHandles,
    /// `None` without metrics.
    page: Option<Arc<MetricsPage>>,
    /// Listeners that open when the models are loaded (`--listen-when-ready`).
    waiting: Option<OpenListeners>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    tls: TlsListeners,
    /// Files that SIGHUP reads again.
    reloads: Vec<FileReload>,
    telemetry: Telemetry,
    /// Removed when the server is dropped.
    socket_files: Vec<SocketFile>,
}

/// What measures how busy the models are.
fn create_reporter(
    settings: &ServerSettings,
    models: &Arc<ModelTable>,
    state: &Arc<ServerState>,
    gpus: Option<Arc<GpuMetrics>>,
) -> Arc<LoadReporter> {
    let utilization =
        |gpus: Arc<GpuMetrics>| Box::new(move || gpus.utilization()) as GpuUtilization;
    let (models, state) = (Arc::clone(models), Arc::clone(state));
    let gpus = gpus.map(utilization);
    Arc::new(LoadReporter::new(models, state, settings.queue_wait_target, gpus))
}

impl Server {
    /// Opens the listeners and serves them, with `--listen-when-ready` that for health alone.
    /// Models are loaded later.
    fn start(
        host: Host,
        settings: ServerSettings,
        log: LogControl,
        runtimes: &ServerRuntimes,
    ) -> Result<Self> {
        start_lines::log_initializing(&settings);
        let removed = shared_objects::remove_leftovers();
        if removed > 0 {
            tracing::info!("removed {removed} shared-memory objects of servers that were killed");
        }
        set_memory_limit(&settings);
        configure_devices(&settings);
        let telemetry = Telemetry::start(&settings)?;
        let settings = Arc::new(settings);
        let access = ServerAccess::open(&settings)?;
        let (models, state) = (Arc::new(ModelTable::default()), Arc::new(ServerState::new()));
        let gpus = metrics_endpoint::open_gpu_metrics(&settings);
        let load_reporter = create_reporter(&settings, &models, &state, gpus.clone());
        let context = Arc::new(FrontendContext {
            settings: Arc::clone(&settings),
            models,
            state,
            load_reporter,
            endpoints: Default::default(),
            shared_memory: Default::default(),
            control: Default::default(),
            log,
            status: Default::default(),
            tracer: telemetry.start_tracer(&settings.trace)?,
            stream_numbers: Default::default(),
            cors: None,
            access: access.gate.clone(),
            caller: None,
            client: None,
        });
        serve_nested(NestedModels::new(&context, runtimes.network.handle()));
        let (stop, _) = watch::channel(false);
        let _guard = runtimes.network.enter();
        let connections = ListenerConnections::new(&settings, host.open_calls);
        context.status.set_connections(connections.counts());
        if !settings.ui {
            context.log.recent_lines().disable();
        }
        let (tasks, socket_files) = (Vec::new(), Vec::new());
        let (mut opened, tls, reloader) = OpenListeners::new(&settings)?;
        let mut reloads = Vec::new();
        if !tls.stats().is_empty() {
            let asked = Arc::<Notify>::default();
            let interval = settings.tls.reload_interval;
            runtimes.health.spawn(reloader.run(interval, Arc::clone(&asked)));
            reloads.push(FileReload { what: "the files of TLS are", asked });
        }
        let (stats, clients) = (access.stats, access.clients);
        if let (Some(reloader), Some(gate)) = (access.reloader, access.gate) {
            let asked = Arc::<Notify>::default();
            let interval = settings.access.reload_interval;
            runtimes.health.spawn(reloader.run(gate.rules, interval, Arc::clone(&asked)));
            reloads.push(FileReload { what: "the auth file is", asked });
        }
        let page = settings.allow_metrics.then(|| {
            let sources = MetricsSources {
                models: Arc::clone(&context.models),
                gpus,
                tls: tls.stats(),
                access: stats,
                clients,
                telemetry: telemetry.stats(&context.tracer),
                load: Arc::clone(&context.load_reporter),
            };
            Arc::new(metrics_endpoint::create_page(&settings, sources))
        });
        let mut server = Self {
            host: Arc::new(host),
            page,
            context,
            connections,
            runtimes: runtimes.handles(),
            waiting: None,
            stop,
            tasks,
            tls,
            reloads,
            telemetry,
            socket_files,
        };
        if settings.listen_when_ready {
            let health = opened.take_health();
            server.waiting = Some(opened);
            opened = health;
        }
        server.open_ports(opened)?;
        Ok(server)
    }

    /// Lets clients connect, and serves them; health and metrics on a runtime of their own.
    fn open_ports(&mut self, mut opened: OpenListeners) -> Result<()> {
        opened.listen()?;
        opened.announce();
        if self.waiting.is_none() {
            start_lines::log_listening(&self.context.settings, &opened.ports());
        }
        if let Some(page) = &self.page {
            let metrics = Listener::Metrics(Arc::clone(page));
            self.serve_listener(opened.metrics, "Metrics Service", &metrics);
        }
        self.serve_listener(opened.grpc, "GRPCService", &Listener::Grpc);
        let page = self.page.clone().filter(|_| self.context.settings.http_metrics);
        self.serve_listener(opened.http, "HTTPService", &Listener::Http(page));
        self.serve_listener(opened.health, "HTTP health service", &Listener::Health);
        self.serve_listener(opened.control, "HTTP control service", &Listener::Control);
        self.serve_listener(opened.control_grpc, "gRPC control service", &Listener::ControlGrpc);
        Ok(())
    }

    fn serve_listener(&mut self, sockets: Vec<BoundListener>, name: &str, listener: &Listener) {
        let RuntimeHandles { network, heavy, health } = &self.runtimes;
        let (runtime, connections) = match listener {
            Listener::Http(_) | Listener::Grpc => (network, &self.connections.requests),
            Listener::Health | Listener::Control | Listener::ControlGrpc => {
                (health, &self.connections.health)
            }
            Listener::Metrics(_) => (health, &self.connections.metrics),
        };
        for mut bound in sockets {
            if matches!(listener, Listener::Grpc) {
                // v2's service and v1's: tools wait for either line.
                tracing::info!("Started GRPCInferenceService at {}", bound.address);
            }
            tracing::info!("Started {name} at {}", bound.address);
            self.socket_files.extend(bound.file.take());
            let (listener, context) = (listener.clone(), Arc::clone(&self.context));
            let (connections, stop) = (Arc::clone(connections), self.stop.subscribe());
            let tls = self.tls.endpoint(listener.name());
            let log = self.telemetry.access_log.clone();
            let heavy = heavy.clone();
            let task = listener.serve(bound, context, connections, (tls, log), heavy, stop);
            self.tasks.push(runtime.spawn(task));
        }
    }

    /// Loads the models, serves until a signal, drains.
    async fn serve(mut self) -> u8 {
        let service = std::env::var_os(service_socket::VARIABLE);
        let service = Arc::new(ServiceSocket::new(service.as_deref()));
        let (log, reloads) = (self.context.log.clone(), std::mem::take(&mut self.reloads));
        let telemetry = self.telemetry.clone();
        let mut signals = match Signals::new(log, reloads, Arc::clone(&service), telemetry) {
            Ok(signals) => signals,
            Err(e) => {
                tracing::error!("cannot handle signals: {e}");
                return 1;
            }
        };
        let (context, host) = (Arc::clone(&self.context), Arc::clone(&self.host));
        let loading = tokio::task::spawn_blocking(move || load_at_startup(&context, &host));
        let report = tokio::select! {
            report = loading => report.unwrap_or_else(|e| Err(Error::internal(format!("loading failed: {e}")))),
            number = signals.end() => {
                tracing::info!("Interrupt signal ({number}) received while loading models; exiting");
                return 1;
            }
        };
        if !self.finish_loading(report) {
            service.send_stopping();
            // Loaded models, and models whose last load failed, are closed before the process ends.
            self.drain().await;
            return 1;
        }
        service.send_ready();
        let number = signals.end().await;
        tracing::info!("Interrupt signal ({number}) received.");
        service.send_stopping();
        let drains = async {
            if number == TERMINATE && !self.context.settings.drain_delay.is_zero() {
                self.delay_drain().await;
            }
            self.drain().await
        };
        tokio::select! {
            code = drains => code,
            number = signals.end() => {
                tracing::warn!("Interrupt signal ({number}) received again. Exiting immediately.");
                1
            }
        }
    }

    /// Models of `--ready-models` that are in no repository: a failure where none can be added,
    /// else the server waits for them.
    fn check_ready_models(&self, report: &mut StartupReport) {
        let settings = &self.context.settings;
        let names = settings.ready_models.iter();
        for name in names.filter(|name| self.context.models.get(name).is_none()) {
            match settings.control_mode {
                ControlMode::None => report.failures.push(format!(
                    "model '{name}', which --ready-models names, is in no repository"
                )),
                _ => tracing::warn!(
                    "not ready until model '{name}', which --ready-models names, is loaded"
                ),
            }
        }
    }

    /// Nothing comes later: perhaps a directory was not mounted.
    fn warn_without_models(&self, loaded: usize) {
        let settings = &self.context.settings;
        if loaded == 0 && settings.control_mode == ControlMode::None {
            let found =
                settings.model_repositories.iter().map(|root| format!("'{}'", root.display()));
            let found = found.collect::<Vec<_>>().join(", ");
            tracing::warn!("no model is served: there is no model directory in {found}");
        }
    }

    /// Enters the phase that follows from the load at start, and opens the ports that wait for it.
    /// False if the server must exit.
    fn finish_loading(&mut self, report: Result<StartupReport>) -> bool {
        if !self.enter_phase(report) {
            return false;
        }
        if let Some(waiting) = self.waiting.take()
            && let Err(e) = self.open_ports(waiting)
        {
            tracing::error!("{e}");
            return false;
        }
        if self.context.state.phase() == ServerPhase::Ready {
            print_line("ready");
        }
        true
    }

    fn enter_phase(&self, report: Result<StartupReport>) -> bool {
        let exit_on_error = self.context.settings.exit_on_error;
        match report {
            Err(e) => {
                tracing::error!("{e}");
                self.context.state.fail(e.to_string());
                !exit_on_error
            }
            Ok(mut report) => {
                self.check_ready_models(&mut report);
                if !report.failures.is_empty() {
                    tracing::error!("failed to load all models: {}", report.failures.join("; "));
                    if exit_on_error {
                        self.context.state.set_phase(ServerPhase::FailedToInitialize);
                        return false;
                    }
                }
                self.context.state.set_phase(ServerPhase::Ready);
                tracing::info!("ready: {} model versions loaded", report.loaded);
                if report.failures.is_empty() {
                    self.warn_without_models(report.loaded);
                }
                true
            }
        }
    }
}
