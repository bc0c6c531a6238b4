//! The tracer: decides which requests are traced, and passes finished traces on.

use crate::active::{ActiveTrace, TraceOrigin};
use crate::block_pool::{BlockPool, clear_block};
use crate::context::TraceContext;
use crate::file::TraceFile;
use crate::ids::TraceIds;
use crate::recent::RecentTraces;
use crate::request_trace::{RequestTrace, TraceReason, TraceWire};
use crate::sampler::{ParentRule, RootRule, TraceSampler};
use crate::sampling::SampledBy;
use crate::settings::{SettingTable, SettingUpdate, TraceTarget, TraceValues};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use trtserver_base::clock::now_ns;
use trtserver_base::error::Result;
use trtserver_base::telemetry_stats::{TraceDrop, TraceStats};
use trtserver_config::{TraceConfig, TraceMode};

/// Finished traces that wait for the thread; further ones are dropped and counted.
const QUEUED: usize = 8192;
/// How often the thread looks for traces. It is not woken, which would cost requests a system call.
const INTERVAL: Duration = Duration::from_millis(20);
/// The same when it has found [`MANY`] at once, so that sinks get them in small portions.
const BUSY_INTERVAL: Duration = Duration::from_millis(5);
const MANY: usize = 100;
/// The same while nothing is traced.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// How long the end of the server waits for the thread.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// Gets finished traces, on the thread `trace`.
pub trait TraceSink: Send + Sync {
    /// Which traces it wants. Asked once.
    fn demand(&self) -> TraceDemand;

    /// A trace has ended. Must not block for long: traces behind it are dropped meanwhile.
    fn finished(&self, trace: &RequestTrace);

    /// The server ends; no trace follows. Must return within a few seconds.
    fn stop(&self) {}
}

/// A finished trace and the setting that sampled it, which must not outlive the delivery: it writes
/// its last file when it is dropped.
type FinishedTrace = (Box<RequestTrace>, Option<SampledBy>);

/// Which traces a sink wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceDemand {
    /// Those that are sampled, and the slow and failed ones.
    Sampled,
    /// Those of all requests, which are then all recorded.
    All,
}

/// Decides which requests are traced, and passes finished traces on. Shared by all parts.
pub struct Tracer {
    /// Some request may be traced. Everything else is looked at only then.
    active: AtomicBool,
    table: ArcSwap<SettingTable>,
    /// One change of settings at a time.
    change: Mutex<()>,
    mode: TraceMode,
    /// Decides before the settings do, in the mode of OpenTelemetry.
    sampler: TraceSampler,
    trace_ids: TraceIds,
    /// Name of the trace file; empty without one.
    file_name: String,
    file: Option<Arc<TraceFile>>,
    options: Vec<(String, String)>,
    /// Requests that took longer are kept, and those that failed.
    slow_ns: Option<u64>,
    all: bool,
    sinks: Vec<Box<dyn TraceSink>>,
    recent: RecentTraces,
    ids: AtomicU64,
    stats: Arc<TraceStats>,
    queue: OnceLock<SyncSender<FinishedTrace>>,
    pool: BlockPool,
    stopping: AtomicBool,
    worker: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Tracer {
    /// A tracer by the settings of the start. It starts its thread once something is traced.
    pub fn new(config: &TraceConfig, sinks: Vec<Box<dyn TraceSink>>) -> Arc<Self> {
        Self::with_sampler(config, None, sinks)
    }

    /// The same with the sampler of the environment. What the command line says wins over it.
    pub fn with_sampler(
        config: &TraceConfig,
        sampler: Option<TraceSampler>,
        sinks: Vec<Box<dyn TraceSink>>,
    ) -> Arc<Self> {
        let mut sampler = sampler.unwrap_or_default();
        if !config.parent_based {
            sampler.parent = ParentRule::Always;
        }
        if config.rate_given {
            sampler.root = RootRule::Rate;
        }
        let file = Some(&config.file).filter(|name| !name.is_empty());
        let file = file.filter(|_| config.mode == TraceMode::Triton);
        let stats: Arc<TraceStats> = Arc::default();
        let file = file.map(|name| TraceFile::new(Path::new(name), Arc::clone(&stats)));
        let file = file.map(Arc::new);
        let target = TraceTarget {
            file: file.clone(),
            without_file: config.mode == TraceMode::OpenTelemetry || config.recent.is_some(),
        };
        let table = SettingTable::new(config.values, target);
        let trace_ids = TraceIds::default();
        let tracer = Arc::new(Self {
            active: AtomicBool::new(false),
            table: ArcSwap::from_pointee(table),
            change: Mutex::default(),
            mode: config.mode,
            sampler,
            trace_ids: trace_ids.clone(),
            file_name: config.file.clone(),
            file,
            options: config.options.clone(),
            slow_ns: config.slow.map(|slow| slow.as_nanos() as u64),
            all: sinks.iter().any(|sink| sink.demand() == TraceDemand::All),
            sinks,
            recent: RecentTraces::new(config.recent.unwrap_or(TraceConfig::DEFAULT_RECENT)),
            ids: AtomicU64::new(0),
            stats,
            queue: OnceLock::new(),
            pool: BlockPool::new(trace_ids),
            stopping: AtomicBool::new(false),
            worker: Mutex::default(),
        });
        tracer.refresh();
        tracer
    }

    /// A tracer that traces nothing until its settings are changed.
    pub fn off() -> Arc<Self> {
        Self::new(&TraceConfig::default(), Vec::new())
    }

    /// Begins the trace of a request to `model`, if it is to be traced. `context` is called only
    /// while something is traced.
    #[inline]
    pub fn begin(
        self: &Arc<Self>,
        wire: TraceWire,
        model: &Arc<str>,
        received_ns: u64,
        context: impl FnOnce() -> Option<Box<TraceContext>>,
    ) -> Option<Arc<ActiveTrace>> {
        if !self.active.load(Relaxed) {
            return None;
        }
        self.begin_active(wire, model, received_ns, context)
    }

    /// Something may be traced.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    #[cold]
    fn begin_active(
        self: &Arc<Self>,
        wire: TraceWire,
        model: &Arc<str>,
        received_ns: u64,
        context: impl FnOnce() -> Option<Box<TraceContext>>,
    ) -> Option<Arc<ActiveTrace>> {
        let table = self.table.load();
        let setting = table.find(model);
        let mut number = None;
        let (sampled, context) = match self.mode {
            // The caller's context decides nothing, so it is read for traced requests only.
            TraceMode::Triton => {
                let sampled = setting.sample(false);
                if !self.records(sampled.as_ref()) {
                    return None;
                }
                (sampled, context())
            }
            TraceMode::OpenTelemetry => {
                let context = context();
                let caller_records = context.as_ref().map(|context| context.sampled);
                let trace_id =
                    || self.trace_ids.trace_id(*number.get_or_insert_with(|| self.next_id()));
                let sampled = match self.sampler.decide(caller_records, trace_id) {
                    Some(false) => None,
                    Some(true) => setting.sample(true),
                    None => setting.sample(false),
                };
                if !self.records(sampled.as_ref()) {
                    return None;
                }
                (sampled, context)
            }
        };
        let id = number.unwrap_or_else(|| self.next_id());
        let origin = TraceOrigin { wire, received_ns, context, sampled, model_context: None };
        Some(ActiveTrace::new(Arc::clone(self), id, origin, model))
    }

    /// Stands for the trace of a request that this process executes for another one, which has the
    /// trace: it only collects what the backend reports.
    pub fn begin_remote(
        self: &Arc<Self>,
        model: &Arc<str>,
        context: TraceContext,
    ) -> Arc<ActiveTrace> {
        let origin = TraceOrigin {
            wire: TraceWire::Nested,
            received_ns: 0,
            context: None,
            sampled: None,
            model_context: Some(Box::new(context)),
        };
        ActiveTrace::new(Arc::clone(self), 0, origin, model)
    }

    /// A request is recorded, given the setting that has sampled it.
    fn records(&self, sampled: Option<&SampledBy>) -> bool {
        sampled.is_some() || self.slow_ns.is_some() || self.all
    }

    pub(crate) fn trace_ids(&self) -> &TraceIds {
        &self.trace_ids
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Relaxed) + 1
    }

    /// Memory for traces.
    pub(crate) fn pool(&self) -> &BlockPool {
        &self.pool
    }

    /// A trace is complete. On a thread of its request.
    pub(crate) fn finish(&self, mut trace: Box<RequestTrace>, sampled: Option<SampledBy>) {
        if let Some(slow) = self.slow_ns {
            if trace.root().failure.is_some() {
                trace.reason = TraceReason::Failed;
            } else if trace.duration_ns() >= slow {
                trace.reason = TraceReason::Slow;
            }
        }
        if trace.sampled.is_none() && trace.reason == TraceReason::Sampled && !self.all {
            return self.pool.give_back(trace);
        }
        let Some(queue) = self.queue.get() else { return };
        if queue.try_send((trace, sampled)).is_err() {
            self.stats.count_dropped(TraceDrop::QueueFull, 1);
        }
    }

    /// Counts traces that were dropped because the thread or the disk did not keep up, or the disk
    /// failed.
    pub fn stats(&self) -> &Arc<TraceStats> {
        &self.stats
    }

    pub fn recent(&self) -> &RecentTraces {
        &self.recent
    }

    pub fn mode(&self) -> TraceMode {
        self.mode
    }

    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Options of the mode, as they were given.
    pub fn options(&self) -> &[(String, String)] {
        &self.options
    }

    /// The values in force for a model; for an empty name those of the server.
    pub fn values(&self, model: &str) -> TraceValues {
        self.table.load().find(model).values()
    }

    /// Changes the settings of a model; for an empty name those of the server.
    ///
    /// # Errors
    /// The new setting traces, but cannot.
    pub fn update(self: &Arc<Self>, model: &str, update: &SettingUpdate) -> Result<()> {
        let _change = self.change.lock();
        let changed = self.table.load().changed(model, update)?;
        self.table.store(Arc::new(changed));
        self.refresh();
        Ok(())
    }

    /// Notes whether something is traced, and starts the thread for it.
    fn refresh(self: &Arc<Self>) {
        let active = self.all || self.slow_ns.is_some() || self.table.load().samples();
        if active && let Err(e) = self.start_thread() {
            tracing::error!("nothing is traced: the thread for traces did not start: {e}");
            return;
        }
        self.active.store(active, Relaxed);
        if let Some(worker) = &*self.worker.lock() {
            worker.thread().unpark();
        }
    }

    fn start_thread(self: &Arc<Self>) -> std::io::Result<()> {
        let mut worker = self.worker.lock();
        if worker.is_some() {
            return Ok(());
        }
        let (sender, receiver) = sync_channel(QUEUED);
        let tracer = Arc::clone(self);
        let run = move || tracer.run(&receiver);
        *worker = Some(thread::Builder::new().name("trace".to_owned()).spawn(run)?);
        let _ = self.queue.set(sender);
        Ok(())
    }

    fn run(&self, queue: &Receiver<FinishedTrace>) {
        let mut free = Vec::with_capacity(MANY);
        loop {
            let stopping = self.stopping.load(Relaxed);
            // Once for all of them: the clocks hardly drift apart in an interval.
            let offset = unix_offset_ns();
            let mut found = 0;
            while let Ok((mut trace, sampled)) = queue.try_recv() {
                trace.unix_offset_ns = offset;
                found += 1;
                free.extend(self.deliver(trace, sampled).and_then(clear_block));
                if free.len() == MANY {
                    self.pool.give_back_all(&mut free);
                }
            }
            self.pool.give_back_all(&mut free);
            if stopping {
                return;
            }
            thread::park_timeout(match self.is_active() {
                true if found >= MANY => BUSY_INTERVAL,
                true => INTERVAL,
                false => IDLE_INTERVAL,
            });
        }
    }

    /// Passes a trace on. Returns memory for another one.
    fn deliver(
        &self,
        trace: Box<RequestTrace>,
        sampled: Option<SampledBy>,
    ) -> Option<Box<RequestTrace>> {
        let wanted = trace.sampled.is_some() || trace.reason != TraceReason::Sampled;
        let pass_on = |trace: &RequestTrace| {
            if let Some(sampled) = sampled {
                sampled.write(trace);
            }
            for sink in &self.sinks {
                if wanted || sink.demand() == TraceDemand::All {
                    sink.finished(trace);
                }
            }
        };
        if wanted {
            return self.recent.add(trace, pass_on);
        }
        pass_on(&trace);
        Some(trace)
    }

    /// Ends tracing: what was recorded is written. Waits a few seconds at most.
    pub fn stop(self: &Arc<Self>) {
        self.active.store(false, Relaxed);
        self.stopping.store(true, Relaxed);
        let worker = self.worker.lock().take();
        let Some(worker) = worker else { return };
        worker.thread().unpark();
        let deadline = Instant::now() + STOP_LIMIT;
        while !worker.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        // The settings give what they have collected to the file when they are dropped.
        let nothing = TraceTarget { file: None, without_file: false };
        let values = TraceValues::default();
        self.table.store(Arc::new(SettingTable::new(values, nothing)));
        if let Some(file) = &self.file {
            file.stop(deadline);
        }
        self.sinks.iter().for_each(|sink| sink.stop());
    }
}

/// Unix time minus the monotonic clock.
fn unix_offset_ns() -> i64 {
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let unix = unix.map_or(0, |unix| unix.as_nanos() as i64);
    unix.saturating_sub(now_ns().cast_signed())
}

#[cfg(test)]
#[path = "tracer_tests.rs"]
mod tests;
