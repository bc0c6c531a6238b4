//! Builds the parts in order and drains them in reverse.

use crate::config::{ControlMode, Settings};
use crate::device::gpu_count;
use crate::error::{Error, Result};
use crate::metrics::Gpus;
use crate::net;
use crate::net::context::{Context, EndpointStats};
use crate::net::listener::{Bound, Protocol, bind, serve};
use crate::net::threads;
use crate::plugin::model::live_models;
use crate::plugin::{Backends, DEFAULT_STACK};
use crate::repository::ModelTable;
use crate::repository::lifecycle::{Loader, ModelControl, StartupReport};
use crate::repository::model_config::Machine;
use crate::state::{Phase, ServerState};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where backends are looked for when `--backend-dir` says nothing: beside the installed binary.
pub fn default_backend_dirs() -> Vec<std::path::PathBuf> {
    let beside =
        std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.join("backends")));
    beside.into_iter().filter(|dir| dir.is_dir()).collect()
}

/// Takes as many file descriptors as the system grants: each connection needs one, and the usual soft
/// limit of 1024 is for programs that would break beyond it.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let number = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |n| n.to_string());
    let (before, after) = (number(limit.current), number(limit.maximum));
    match setrlimit(Resource::Nofile, most) {
        Ok(()) => tracing::info!("limit of open files raised from {before} to {after}"),
        Err(e) => tracing::warn!("the limit of open files stays at {before}: {e}"),
    }
}

/// Runs the server until it is told to stop. The number is the exit status of the process.
pub fn run(settings: Settings) -> u8 {
    raise_descriptor_limit();
    let runtime = match threads::runtime(DEFAULT_STACK) {
        Ok(runtime) => runtime,
        Err(e) => {
            tracing::error!("no threads for the network: {e}");
            return 1;
        }
    };
    let code = match Server::start(settings, &runtime) {
        Ok(server) => runtime.block_on(server.serve()),
        Err(e) => {
            tracing::error!("{e}");
            1
        }
    };
    // Whatever still blocks after the drain must not hold the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    code
}

/// A server whose sockets are open.
struct Server {
    context: Arc<Context>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens the sockets and answers on them; models come later.
    fn start(settings: Settings, runtime: &Runtime) -> Result<Self> {
        tracing::info!("Initializing trtserver {}", env!("CARGO_PKG_VERSION"));
        let settings = Arc::new(settings);
        let context = Arc::new(Context {
            settings: Arc::clone(&settings),
            models: Arc::new(ModelTable::default()),
            state: Arc::new(ServerState::new()),
            endpoints: EndpointStats::default(),
            control: Default::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let mut server = Self { context: Arc::clone(&context), stop, tasks: Vec::new() };
        let _guard = runtime.enter();

        // All sockets are bound before any is served: a taken port stops the start, nothing else.
        let open = |on: bool, what: &str, address: &str, port: u16| {
            if on { bind(what, address, port).map(Some) } else { Ok(None) }
        };
        let s = &settings;
        let metrics = open(s.allow_metrics, "Metrics Service", &s.metrics_address, s.metrics_port)?;
        let grpc = open(s.allow_grpc, "GRPCService", &s.grpc_address, s.grpc_port)?;
        let http = open(s.allow_http, "HTTPService", &s.http_address, s.http_port)?;
        let health = match s.http_health_port {
            Some(port) if s.allow_http => Some(bind("HTTP health", &s.http_address, port)?),
            _ => None,
        };
        announce(&[("http", &http), ("grpc", &grpc), ("metrics", &metrics), ("health", &health)]);

        let mut spawn = |bound: Bound, listener: Listener| {
            let task = listener.serve(bound, Arc::clone(&context), stopped.clone());
            server.tasks.push(tokio::spawn(task));
        };
        if let Some(bound) = metrics {
            tracing::info!("Started Metrics Service at {}", bound.address);
            let gpus = (s.allow_gpu_metrics && !s.cpu_only).then(|| Gpus::open(s.metrics_interval));
            spawn(bound, Listener::Metrics(Arc::new(gpus.flatten())));
        }
        if let Some(bound) = grpc {
            tracing::info!("Started GRPCService at {}", bound.address);
            spawn(bound, Listener::Grpc);
        }
        if let Some(bound) = http {
            tracing::info!("Started HTTPService at {}", bound.address);
            spawn(bound, Listener::Http);
        }
        if let Some(bound) = health {
            tracing::info!("Started HTTP health service at {}", bound.address);
            spawn(bound, Listener::Health);
        }
        Ok(server)
    }

    /// Loads the models, serves, drains.
    async fn serve(self) -> u8 {
        let (mut interrupt, mut terminate) =
            match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
                (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
                (Err(e), _) | (_, Err(e)) => {
                    tracing::error!("signals cannot be watched: {e}");
                    return 1;
                }
            };
        let context = Arc::clone(&self.context);
        let loading = tokio::task::spawn_blocking(move || load(&context));
        let outcome = tokio::select! {
            outcome = loading => outcome.unwrap_or_else(|e| Err(Error::internal(format!("loading failed: {e}")))),
            number = next_signal(&mut interrupt, &mut terminate) => {
                tracing::info!("Interrupt signal ({number}) received while models load; exiting");
                return 1;
            }
        };
        if !self.settle(outcome) {
            return 1;
        }
        let number = next_signal(&mut interrupt, &mut terminate).await;
        tracing::info!("Interrupt signal ({number}) received.");
        tokio::select! {
            code = self.drain() => code,
            number = next_signal(&mut interrupt, &mut terminate) => {
                tracing::warn!("Interrupt signal ({number}) received again. Exiting immediately.");
                1
            }
        }
    }

    /// What the load means for the server; false = it ends here.
    fn settle(&self, outcome: Result<StartupReport>) -> bool {
        let exit_on_error = self.context.settings.exit_on_error;
        match outcome {
            Err(e) => {
                tracing::error!("{e}");
                self.context.state.set_phase(Phase::FailedToInitialize);
                !exit_on_error
            }
            Ok(outcome) => {
                if !outcome.failures.is_empty() {
                    tracing::error!("failed to load all models: {}", outcome.failures.join("; "));
                    if exit_on_error {
                        self.context.state.set_phase(Phase::FailedToInitialize);
                        return false;
                    }
                }
                self.context.state.set_phase(Phase::Ready);
                tracing::info!("ready: {} model versions are served", outcome.loaded);
                say("ready");
                true
            }
        }
    }

    /// Waits for what runs, unloads, closes. Exit status 0 only if all of it ended in time.
    async fn drain(self) -> u8 {
        let state = &self.context.state;
        state.set_phase(Phase::Exiting);
        // Nothing is loaded from here on, and what is being loaded is waited for.
        let control = self.context.control.swap(None);
        if let Some(control) = &control {
            control.stop();
        }
        tracing::info!("CancelObserver for in-flight inferences to complete.");
        let limit = self.context.settings.exit_timeout;
        let start = Instant::now();
        let mut told = None;
        let code = loop {
            // What continues a sequence is accepted until the last one has ended, and needs its model for that.
            let sequences = self.context.models.sequences();
            if sequences == 0 {
                self.context.models.unload_all();
            }
            // In this order: what a change opens counts as a model before the change has ended.
            let changes = control.as_ref().map_or(0, |control| control.changes_in_progress());
            let (models, requests) = (live_models(), state.in_flight());
            if models == 0 && requests == 0 && changes == 0 {
                break 0;
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                tracing::error!("Exit timeout expired. Exiting immediately.");
                break 1;
            }
            if told != Some(left.as_secs()) {
                told = Some(left.as_secs());
                tracing::info!(
                    "Timeout {}: Found {models} live models, {requests} in-flight requests and \
                     {sequences} sequences that have not ended",
                    left.as_secs() + 1
                );
            }
            tokio::time::sleep(Duration::from_millis(5).min(left)).await;
        };
        let _ = self.stop.send(true);
        for task in self.tasks {
            let _ = task.await;
        }
        code
    }
}

/// What answers on a socket.
enum Listener {
    Http,
    Health,
    Grpc,
    Metrics(Arc<Option<Gpus>>),
}

impl Listener {
    async fn serve(self, bound: Bound, context: Arc<Context>, stop: watch::Receiver<bool>) {
        let served = match self {
            Listener::Http => {
                let http = move |request, at| net::router::http(Arc::clone(&context), request, at);
                serve(bound, Protocol::Http1, http, stop).await
            }
            Listener::Health => {
                serve(bound, Protocol::Http1, net::router::health(context), stop).await
            }
            Listener::Grpc => serve(bound, Protocol::Http2, net::router::grpc(context), stop).await,
            Listener::Metrics(gpus) => {
                serve(bound, Protocol::Http1, net::router::metrics(context, gpus), stop).await
            }
        };
        if let Err(e) = served {
            tracing::error!("{e}");
        }
    }
}

/// Prints the addresses for scripts: one line each on standard output, before models load.
fn announce(sockets: &[(&str, &Option<Bound>)]) {
    for (what, bound) in sockets {
        if let Some(bound) = bound {
            say(&format!("listening {what} {}", bound.address));
        }
    }
}

/// One line on standard output; nobody listening is no reason to fail.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

async fn next_signal(interrupt: &mut Signal, terminate: &mut Signal) -> i32 {
    tokio::select! {
        _ = interrupt.recv() => 2,
        _ = terminate.recv() => 15,
    }
}

/// Finds backends and loads all models.
fn load(context: &Context) -> Result<StartupReport> {
    let settings = &context.settings;
    for root in &settings.model_repositories {
        if !Path::new(root).is_dir() {
            return Err(Error::invalid(format!(
                "model repository '{}' is not a directory that can be read",
                root.display()
            )));
        }
    }
    let dirs = match settings.backend_dirs.as_slice() {
        [] => default_backend_dirs(),
        dirs => dirs.to_vec(),
    };
    let backends = Arc::new(Backends::open(&dirs, &settings.backend_config)?);
    let gpus = if settings.cpu_only { 0 } else { gpu_count() };
    if gpus == 0 {
        tracing::info!(
            "no GPU is used: {}",
            if settings.cpu_only { "the environment says so" } else { "none was found" }
        );
    }
    context.models.set_backends(Arc::clone(&backends));
    let loader = Loader {
        backends,
        machine: Machine::with_gpus(gpus),
        strict: settings.strict_model_config,
        threads: settings.model_load_thread_count,
        drain: settings.exit_timeout,
        reloadable: settings.control_mode == ControlMode::Explicit,
    };
    let roots = &settings.model_repositories;
    match settings.control_mode {
        // The loader goes, and with it what keeps a backend open without models.
        ControlMode::None => loader.load_all(&context.models, roots, None),
        ControlMode::Explicit => {
            let control = Arc::new(ModelControl::new(loader, &context.models, roots));
            let report = control.load_at_start(&settings.load_models);
            context.control.store(Some(control));
            report
        }
    }
}
