//! Finds backends and loads models at start.

use crate::host::Host;
use crate::late_repositories::{self, WAIT_LIMIT};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::host_policy::HostPolicy;
use trtserver_base::timer::DeadlineTimer;
use trtserver_config::{ControlMode, RateLimitSettings, ServerSettings, platform_config};
use trtserver_device::{GpuDevice, GpuDriver};
use trtserver_isolation::ProcessLauncher;
use trtserver_model_config::{MachineFacts, MachineGpu};
use trtserver_model_files::ROOTS_SETTING;
use trtserver_model_store::{BareSettings, ModelRepositories, StoreLocation, StoreSettings};
use trtserver_models::LateRequests;
use trtserver_models::lifecycle::{ModelControl, ModelLoader, StartupReport};
use trtserver_models::limiter::{RateLimiter, ResourceCount};
use trtserver_models::load_limits::{LoadLimits, instance_limit};
use trtserver_models::poll::RepositoryPoller;
use trtserver_plugin_host::{AdapterOptions, BackendDirs, Backends};
use trtserver_response_cache::ResponseStore;
use trtserver_wire::context::FrontendContext;

/// Finds the backends and loads the models of the start.
pub fn load_at_startup(context: &FrontendContext, host: &Host) -> Result<StartupReport> {
    let settings = &context.settings;
    if settings.repositories_come_late {
        late_repositories::wait_for_directories(&settings.model_repositories, WAIT_LIMIT)?;
    }
    let loader = create_loader(settings, host.timer, &host.launcher)?;
    let repositories = open_repositories(settings, &loader.backends)?;
    context.models.set_cache(repositories.cache());
    if let Some(limiter) = &loader.limiter {
        context.models.set_limiter(limiter);
    }
    context.models.set_backends(Arc::clone(&loader.backends));
    if let Some(cache) = &settings.response_cache {
        let store = ResponseStore::new(cache.size, cache.ttl).map_err(Error::invalid)?;
        context.models.set_response_store(store);
        tracing::info!("Response Cache is created with size {}", cache.size);
    }
    match settings.control_mode {
        // Drops the loader and its reference to the backends, so that a backend closes with its
        // last model.
        ControlMode::None => Ok(loader.load_all(&context.models, &repositories, None)),
        ControlMode::Poll => {
            let control = ModelControl::new(loader, &context.models, repositories.clone());
            let control = Arc::new(control);
            let (interval, settle) = (settings.poll_interval, settings.settle_time);
            let unusable = |e: std::io::Error| Error::internal(format!("cannot poll: {e}"));
            let poller = RepositoryPoller::new(&control, &repositories, interval, settle)
                .map_err(unusable)?;
            let report = control.load_at_start(&["*".to_owned()]);
            context.control.store(Some(control));
            let failed = context.models.all().into_iter().filter(|(_, model)| !model.is_loaded());
            poller.start(failed.map(|(name, _)| name)).map_err(unusable)?;
            Ok(report)
        }
        ControlMode::Explicit => {
            if !settings.allow_uploaded_code {
                tracing::info!("load requests may not bring code (--allow-uploaded-code=false)");
            }
            let control = Arc::new(ModelControl::new(loader, &context.models, repositories));
            let report = control.load_at_start(&settings.load_models);
            context.control.store(Some(control));
            Ok(report)
        }
    }
}

/// The repositories that models are loaded from. `backends` say which files are models.
///
/// # Errors
/// A directory does not exist, a URL is invalid, or there are no credentials for it.
pub fn open_repositories(
    settings: &ServerSettings,
    backends: &Backends,
) -> Result<ModelRepositories> {
    let stores = StoreSettings {
        cache_dir: settings.model_cache_dir.clone(),
        cache_size: settings.model_cache_size,
        timeout: settings.store_timeout,
        bare: BareSettings {
            files: backends.default_files(),
            name: settings.bare_model_name.clone(),
            service: settings.inference_service.clone(),
        },
    };
    ModelRepositories::open(&settings.model_repositories, &stores, settings.model_namespacing)
}

/// What models are loaded with: the installed backends, the GPUs of this machine, limits.
///
/// # Errors
/// A backend directory cannot be read, or its contents contradict each other.
pub fn create_loader(
    settings: &ServerSettings,
    timer: &'static DeadlineTimer,
    launcher: &Arc<ProcessLauncher>,
) -> Result<ModelLoader> {
    let dirs = backend_dirs(settings);
    let mut backend_config = match &settings.platform_config_file {
        Some(file) => platform_config::read_platform_config(file, settings.strict_model_config)
            .map_err(Error::invalid)?,
        None => BTreeMap::new(),
    };
    for (backend, more) in &settings.backend_config {
        backend_config.entry(backend.clone()).or_default().extend(more.clone());
    }
    let link_roots = link_roots(settings)?;
    let lines: Vec<_> = link_roots.iter().map(|root| root.to_string_lossy()).collect();
    let for_all = backend_config.entry(String::new()).or_default();
    for_all.insert(ROOTS_SETTING.to_owned(), lines.join("\n"));
    let adapters =
        AdapterOptions { dirs: default_adapter_dirs(), settings: adapter_settings(settings) };
    let rules = settings.trtis_rules;
    let processes = Arc::clone(launcher) as _;
    let backends = Arc::new(Backends::open(dirs, &backend_config, adapters, rules, processes)?);
    if settings.strict_model_config {
        tracing::info!("Model configurations must be complete (--strict-model-config=true)");
    } else {
        tracing::info!(
            "Incomplete model configurations are completed (--strict-model-config=false)"
        );
    }
    let machine = Arc::new(machine(settings)?);
    machine.log();
    Ok(ModelLoader {
        backends,
        machine,
        strict: settings.strict_model_config,
        strict_bare: settings.strict_bare_models,
        trtis_rules: settings.trtis_rules,
        config_name: settings.model_config_name.clone(),
        retries: settings.model_load_retries,
        limits: LoadLimits {
            instances: settings.max_instances_per_model,
            memory: settings.max_load_memory,
            warmup: settings.warmup_timeout,
        },
        instance_limit: instance_limit(settings.max_instances),
        threads: settings.model_load_thread_count,
        drain: settings.exit_timeout,
        sequence_drain: settings.exit_sequence_timeout,
        reloadable: settings.control_mode != ControlMode::None,
        polls: settings.control_mode == ControlMode::Poll,
        link_roots,
        uploaded_code: settings.allow_uploaded_code,
        timer,
        latency: settings.latency_metrics.clone(),
        batch_numbers: Arc::default(),
        limiter: settings.rate_limit.as_ref().map(create_limiter),
        fair: settings.fairness.is_some(),
        late_requests: LateRequests {
            refused: settings.refuse_late_requests,
            target: settings.queue_wait_target,
        },
    })
}

fn create_limiter(settings: &RateLimitSettings) -> Arc<RateLimiter> {
    let counts = settings.resources.iter().map(|resource| ResourceCount {
        name: resource.name.clone(),
        count: resource.count,
        device: resource.device,
    });
    RateLimiter::new(counts.collect())
}

/// Where links of models may lead: the repositories on local disk, and the directories of
/// `--model-link-dir`.
///
/// # Errors
/// One of the latter cannot be resolved.
fn link_roots(settings: &ServerSettings) -> Result<Vec<PathBuf>> {
    let local =
        settings.model_repositories.iter().filter_map(|location| {
            match StoreLocation::parse(location).ok()? {
                StoreLocation::Local(path) => path.canonicalize().ok(),
                StoreLocation::Object(_) => None,
            }
        });
    let named = settings.model_link_dirs.iter().map(|dir| {
        let unusable = |why| Error::invalid(format!("--model-link-dir={}: {why}", dir.display()));
        let root = dir.canonicalize().map_err(|e| unusable(e.to_string()))?;
        match root.is_dir() {
            true => Ok(root),
            false => Err(unusable("not a directory".to_owned())),
        }
    });
    let named: Vec<_> = named.collect::<Result<_>>()?;
    let mut roots: Vec<_> = local.chain(named).collect();
    // Backends get one path on each line.
    roots.retain(|root| {
        let plain = root.to_str().is_some_and(|text| !text.contains('\n'));
        if !plain {
            tracing::warn!("links of models may not lead to {root:?}: its name has a line break or is not UTF-8");
        }
        plain
    });
    Ok(roots)
}

/// The GPUs that instances may be placed on, and what flags say of them and of the CPU.
///
/// # Errors
/// A host policy names a core or a node that the process cannot use.
fn machine(settings: &ServerSettings) -> Result<MachineFacts> {
    settings.host_policies.values().try_for_each(HostPolicy::check_machine)?;
    let gpus = find_gpus().iter().map(|gpu| MachineGpu {
        id: gpu.ordinal,
        name: gpu.name.clone(),
        compute: gpu.compute_capability,
    });
    Ok(MachineFacts::new(gpus.collect(), settings.min_compute_capability)
        .with_host_policies(&settings.host_policies)
        .with_load_limits(settings.gpu_load_limits.clone()))
}

/// The GPUs of this process, which are logged.
fn find_gpus() -> &'static [GpuDevice] {
    match GpuDriver::get() {
        Ok(driver) => {
            for gpu in driver.devices() {
                tracing::info!(
                    "found GPU {}: {}, {}, compute capability {}, {} MiB, PCI {}",
                    gpu.ordinal,
                    gpu.name,
                    gpu.uuid_text(),
                    gpu.compute_capability_text(),
                    gpu.total_memory >> 20,
                    gpu.pci_bus_id
                );
            }
            driver.devices()
        }
        Err(absent) => {
            tracing::info!("GPUs are not used: {absent}");
            &[]
        }
    }
}

/// Settings of adapted backends that follow from those of the server.
fn adapter_settings(settings: &ServerSettings) -> BTreeMap<String, String> {
    let text = |key: &str, value: String| (key.to_owned(), value);
    BTreeMap::from([
        text("auto-complete-config", (!settings.strict_model_config).to_string()),
        text("min-compute-capability", format!("{:.6}", settings.min_compute_capability)),
        text("default-max-batch-size", "4".to_owned()),
    ])
}

/// Directories to search for adapters beside the backend directories: `../plugins` of the program.
pub fn default_adapter_dirs() -> Vec<PathBuf> {
    beside_program("plugins")
}

/// The directories of `--backend-dir`, and that of the installation unless it is one of them.
fn backend_dirs(settings: &ServerSettings) -> BackendDirs {
    let given = settings.backend_dirs.clone();
    let mut default = default_backend_dirs();
    let real = |dir: &PathBuf| dir.canonicalize().unwrap_or_else(|_| dir.clone());
    default.retain(|dir| !given.iter().any(|own| real(own) == real(dir)));
    BackendDirs { given, default }
}

/// The directory of the installation with backends: `../backends` of the program. It is searched
/// after those of `--backend-dir`.
pub fn default_backend_dirs() -> Vec<PathBuf> {
    beside_program("backends")
}

/// `../NAME` of the program, if it exists.
fn beside_program(name: &str) -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let beside = program.and_then(|program| Some(program.parent()?.parent()?.join(name)));
    beside.into_iter().filter(|dir| dir.is_dir()).collect()
}
