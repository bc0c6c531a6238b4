//! Opens the instance of a worker: niceness, cores, streams, the backend's instance, its warm-up.

use super::priority::set_niceness;
use super::worker::InstanceWorker;
use std::sync::Arc;
use trtserver_base::error::Result;
use trtserver_device::{GpuDevice, InstanceStreams, LostWatch};
use trtserver_plugin_host::InstanceFacts;
use trtserver_plugin_host::load_priority;
use trtserver_plugin_host::load_priority::LowPriority;
use trtserver_plugin_host::model::BackendInstance;
use trtserver_proto::v2::model_instance_group::Kind;

impl InstanceWorker {
    pub(super) fn open(&mut self) -> Result<(WorkerGpu, BackendInstance)> {
        // The process of an isolated model has streams of its own.
        let gpu = self.plan.kind == Kind::Gpu && !self.model.is_isolated();
        let priority = self.plan.priority;
        // First, because threads that the backend starts inherit it.
        let low = LowPriority::inherited(self.plan.nice);
        let nice = match &low {
            Some(_) => self.plan.nice,
            None => set_niceness(self.plan.nice),
        };
        if self.is_bound() {
            self.plan.host_policy.bind_thread()?;
        }
        self.stats.placed(self.ordinal, self.gpu_uuid());
        self.stats.set_decoupled(self.decoupled);
        let streams = InstanceStreams::for_instance(gpu, self.plan.device, priority.stream())?;
        tracing::info!(
            "model '{}' instance {}: nice value {nice}{}{}",
            self.signature.model,
            self.plan.name,
            streams.priority().map_or(String::new(), |p| format!(", stream priority {p}")),
            match self.plan.host_policy.has_settings() {
                true => format!(", {}", self.plan.host_policy.describe()),
                false => String::new(),
            }
        );
        let facts = InstanceFacts {
            name: &self.plan.name,
            kind: self.plan.kind as u32,
            ordinal: self.ordinal as u32,
            device: self.plan.device,
            threads: self.plan.host_policy.limit_threads(self.threads),
            load_limit: self.load_limit,
            max_rows: self.signature.max_batch_size.max(1),
            profiles: &self.plan.profiles,
            secondary_devices: &self.plan.secondary_devices,
            host_policy: &self.plan.host_policy,
            streams: streams.clone(),
            nice: self.plan.nice,
            drain: self.drain,
        };
        let in_process =
            (!self.model.is_isolated()).then(|| self.cancel.enters(&self.model.backend.facts.name));
        let mut instance = BackendInstance::open(&self.model, &facts)?;
        drop(in_process);
        if let BackendInstance::Isolated(remote) = &instance {
            let (queue, ordinal) = (Arc::downgrade(&self.queue), self.ordinal);
            remote.on_sequences_lost(Box::new(move || {
                if let Some(queue) = queue.upgrade() {
                    queue.lose_instance_state(ordinal);
                }
            }));
        }
        self.progress.iter().for_each(|progress| progress.instance_opened());
        // The samples may be large and are not needed afterwards.
        let samples = std::mem::take(&mut self.warmup);
        if !samples.is_empty() {
            self.stats.warmed_up(self.warm_up(&mut instance, &samples)?);
        }
        if low.is_some() {
            drop(low);
            load_priority::restore_started();
        }
        let watch = streams.gpu().map(|gpu| {
            let broken = self.broken_observer();
            let ordinal = gpu.device.ordinal;
            gpu.device
                .context()
                .on_lost(move |reason| broken(&format!("GPU {ordinal} is lost: {reason}")))
        });
        Ok((WorkerGpu { _watch: watch, _streams: streams }, instance))
    }

    /// Whether this thread runs on cores of its own; of an isolated model the thread of its process
    /// does.
    pub(super) fn is_bound(&self) -> bool {
        self.plan.host_policy.has_settings() && !self.model.is_isolated()
    }

    /// UUID of the instance's GPU, also if another process executes the instance.
    fn gpu_uuid(&self) -> Option<String> {
        let gpu = (self.plan.kind == Kind::Gpu)
            .then(|| trtserver_device::find_gpu(self.plan.device).ok());
        gpu.flatten().map(GpuDevice::uuid_text)
    }
}

/// What an instance has on its GPU, if it has one.
pub(super) struct WorkerGpu {
    /// Dropped first.
    _watch: Option<LostWatch>,
    _streams: InstanceStreams,
}
