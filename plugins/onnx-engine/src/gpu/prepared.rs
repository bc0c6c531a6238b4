//! The sessions of an instance that is prepared for some batch sizes: opened, warmed and measured
//! when the instance is opened.
//!
//! What cannot be had is logged with the reason, and the instance then has one session for batches
//! of any size; where the configuration asks for it by name the model is refused instead.

use super::buckets::{
    BUCKETS, GRAPHS, Switch, bucket_sizes, expect_fixed_inputs, expect_fixed_outputs, find_bucket,
};
use super::fault::explain_fault;
use super::fixed_block::zeroed;
use super::fixed_session::FixedSession;
use super::row_proof::expect_independent_rows;
use super::session::GpuSession;
use crate::model::{ModelSource, OnnxModel, SessionVariant};
use crate::outputs::add_requested;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::author::{BatchSize, Counter, Device, HostMemory, Request, Scope};

/// Runs of each size before the first request: the first allocates, the second may capture a graph.
const WARMUP_RUNS: usize = 3;
/// Runs of each size whose shortest time is announced.
const TIMED_RUNS: usize = 3;

pub struct PreparedSessions {
    /// By size, ascending.
    all: Vec<FixedSession>,
    times: Vec<Duration>,
    /// Zeros for padding.
    zeros: Option<HostMemory>,
    /// All sizes are graphs of one session.
    shared: bool,
    /// The session of the present batch.
    current: usize,
    rows_counter: Option<Counter>,
    padding_counter: Option<Counter>,
}

/// Whether the runs of an attempt are CUDA graphs.
type WithGraphs = bool;

/// Why the sessions cannot be had.
enum PreparedFault {
    /// The model cannot be opened at all.
    Model(PluginFault),
    /// The library, the memory or the device: perhaps not without CUDA graphs.
    Session(PluginFault),
    /// Batches must not be padded.
    Rows(PluginFault),
}

impl From<PluginFault> for PreparedFault {
    fn from(fault: PluginFault) -> Self {
        Self::Session(fault)
    }
}

/// Opens the sessions; `None`: the instance has one session for any size, and the log says why.
///
/// # Errors
/// The configuration asks for what cannot be had.
pub fn open_prepared(
    source: &ModelSource,
    device: &Device,
    scope: &Scope,
) -> Result<Option<PreparedSessions>, PluginFault> {
    let (switches, config) = (source.switches, &source.config);
    let batches = config.max_batch_size > 1;
    if switches.buckets == Switch::Off {
        return do_without(source, scope, "batch_buckets is 0");
    }
    if switches.graphs == Switch::Off && !batches {
        return Ok(None);
    }
    if let Err(why) = expect_fixed_inputs(config, source.gpu_providers()) {
        return do_without(source, scope, &why);
    }
    let mut no_graphs = None;
    if switches.graphs != Switch::Off {
        let outputs = expect_fixed_outputs(config).map_err(PluginFault::unsupported);
        let opened = outputs.map_err(PreparedFault::from);
        match opened.and_then(|()| open_all(source, device, scope, true)) {
            Ok(opened) => return Ok(Some(opened)),
            Err(PreparedFault::Rows(fault)) => return do_without(source, scope, &fault.text),
            Err(PreparedFault::Session(fault) | PreparedFault::Model(fault))
                if switches.graphs == Switch::On =>
            {
                let model = &config.model;
                return Err(fault.within(format_args!("model '{model}': {GRAPHS} is 1")));
            }
            Err(PreparedFault::Session(fault) | PreparedFault::Model(fault)) => {
                no_graphs = Some(fault);
            }
        }
    }
    if !batches {
        // Sizes without graphs have no use for a model that does not batch.
        return match no_graphs {
            Some(fault) => do_without(source, scope, &fault.text),
            None => Ok(None),
        };
    }
    match open_all(source, device, scope, false) {
        Ok(opened) => {
            if let Some(fault) = no_graphs {
                note(source, scope, format_args!("CUDA graphs are off: {fault}"));
            }
            Ok(Some(opened))
        }
        Err(PreparedFault::Model(fault)) => Err(fault),
        Err(PreparedFault::Session(fault) | PreparedFault::Rows(fault)) => {
            do_without(source, scope, &fault.text)
        }
    }
}

/// One session for any size, for this reason.
///
/// # Errors
/// The configuration asks for sizes or graphs.
fn do_without(
    source: &ModelSource,
    scope: &Scope,
    why: &str,
) -> Result<Option<PreparedSessions>, PluginFault> {
    let (model, switches) = (&source.config.model, source.switches);
    for (key, switch) in [(BUCKETS, switches.buckets), (GRAPHS, switches.graphs)] {
        if switch == Switch::On {
            let text = format!("model '{model}': {key} is 1, which cannot be done: {why}");
            return Err(PluginFault::invalid(text));
        }
    }
    let what = match source.config.max_batch_size {
        0 | 1 => "CUDA graphs are off",
        _ => "batches are not padded to prepared sizes, and CUDA graphs are off",
    };
    note(source, scope, format_args!("{what}: {why}"));
    Ok(None)
}

fn note(source: &ModelSource, scope: &Scope, text: std::fmt::Arguments<'_>) {
    scope.info(format_args!("model '{}': {text}", source.config.model));
}

fn open_all(
    source: &ModelSource,
    device: &Device,
    scope: &Scope,
    graph: WithGraphs,
) -> Result<PreparedSessions, PreparedFault> {
    let begin = Instant::now();
    let facts = &source.config.facts;
    let sizes = bucket_sizes(&facts.preferred_sizes, source.config.max_batch_size);
    let shared = graph && source.switches.shared == Switch::On;
    let mut used = 0;
    let mut opened = Vec::with_capacity(sizes.len());
    // The largest first: it needs most memory, and shows whether rows are independent.
    for &rows in sizes.iter().rev() {
        let model = match opened.first() {
            Some((FixedSession { session, .. }, _)) if shared => Arc::clone(&session.model),
            _ => {
                let variant = SessionVariant { graph, limit: source.memory_left(used)? };
                let model = source.open(Some(device), &variant, scope).map_err(PluginFault::from);
                // A session for any size is opened in the same way as the first one without a graph.
                let of_model = opened.is_empty() && !graph;
                Arc::new(model.map_err(|fault| match of_model {
                    true => PreparedFault::Model(fault),
                    false => PreparedFault::Session(fault),
                })?)
            }
        };
        let graph_id = shared.then_some(opened.len() + 1);
        let fixed = fix_session(model, &source.config, rows, graph, graph_id, (device, scope));
        let mut session = fixed?;
        let time = warm_up(&mut session, device)?;
        if opened.is_empty() && rows > 1 && source.switches.buckets != Switch::On {
            expect_independent_rows(&mut session, device).map_err(PreparedFault::Rows)?;
            session.mark_filled();
        }
        let arena = session.session.arena_bytes().unwrap_or(0);
        used = if shared { arena } else { used + arena };
        opened.push((session, time));
    }
    opened.reverse();
    let largest = opened.last().map(|(session, _)| session);
    let padding = |session: &FixedSession| {
        let rows = session.inputs().iter().filter(|block| block.is_on_device());
        rows.map(|block| block.row_bytes * (session.rows - 1)).max().unwrap_or(0)
    };
    let zeros = match largest.map_or(0, padding) {
        0 => None,
        bytes => Some(zeroed(device, scope, bytes)?),
    };
    let (all, times): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let [rows_counter, padding_counter] = count_rows(source, scope);
    let prepared =
        PreparedSessions { all, times, zeros, shared, current: 0, rows_counter, padding_counter };
    prepared.describe(source, (device, scope), graph, begin.elapsed());
    Ok(prepared)
}

/// Binds the tensors of a new session.
fn fix_session(
    model: Arc<OnnxModel>,
    config: &Config,
    rows: usize,
    graph: WithGraphs,
    graph_id: Option<usize>,
    (device, scope): (&Device, &Scope),
) -> Result<FixedSession, PluginFault> {
    if let Some(input) = model.plan.inputs.iter().find(|input| input.optional) {
        let text = format!("input '{}' has a default in the file", input.name);
        return Err(PluginFault::unsupported(text));
    }
    let session = GpuSession::new(model, device.id(), graph_id)?;
    let fixed = FixedSession::new(session, config, rows, graph, (device, scope))?;
    match fixed.unknown_output().filter(|_| graph) {
        None => Ok(fixed),
        Some(output) => Err(PluginFault::unsupported(format!(
            "the shape of output '{output}' is known after a run only"
        ))),
    }
}

/// Runs with zeros, and returns the time of a run.
fn warm_up(session: &mut FixedSession, device: &Device) -> Result<Duration, PluginFault> {
    let mut run = || session.run().map_err(|fault| explain_fault(fault, device));
    for _ in 0..WARMUP_RUNS {
        run()?;
    }
    let mut shortest = Duration::MAX;
    for _ in 0..TIMED_RUNS {
        let begin = Instant::now();
        run()?;
        shortest = shortest.min(begin.elapsed());
    }
    Ok(shortest)
}

/// Counters on the metrics page; without them, which a host may refuse, the instance serves too.
fn count_rows(source: &ModelSource, scope: &Scope) -> [Option<Counter>; 2] {
    let version = source.version.to_string();
    let labels = [("model", source.config.model.as_str()), ("version", version.as_str())];
    [
        ("onnxruntime_prepared_rows_total", "Rows of requests in batches of prepared sizes"),
        ("onnxruntime_padding_rows_total", "Rows of zeros that were added to such batches"),
    ]
    .map(|(name, help)| match scope.counter(name, help, &labels) {
        Ok(counter) => Some(counter),
        Err(e) => {
            scope.warning(format_args!("the metric {name} is not kept: {e}"));
            None
        }
    })
}

impl PreparedSessions {
    /// One line that says what the sessions are and cost.
    fn describe(
        &self,
        source: &ModelSource,
        (device, scope): (&Device, &Scope),
        graph: WithGraphs,
        took: Duration,
    ) {
        let list = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(", ");
        let sizes = list(&mut self.all.iter().map(|session| session.rows.to_string()));
        let times = list(&mut self.times.iter().map(|time| time.as_micros().to_string()));
        let what = match self.model().plan.batching {
            true => format!("batches of {sizes} rows"),
            false => "its one shape".to_owned(),
        };
        let sessions = match (self.shared, self.all.len()) {
            (true, _) | (_, 1) => "one session".to_owned(),
            (false, n) => format!("{n} sessions, each with weights of its own"),
        };
        note(
            source,
            scope,
            format_args!(
                "prepared for {what}{}: a run takes {times} us; {} bytes of GPU {} in {sessions}; ready in {:.1} s",
                if graph { " with CUDA graphs" } else { "" },
                self.device_bytes(),
                device.id(),
                took.as_secs_f64()
            ),
        );
    }

    /// Bytes on the device: arenas of the sessions and blocks.
    fn device_bytes(&self) -> u64 {
        let blocks: usize = self.all.iter().map(FixedSession::device_bytes).sum();
        let zeros = self.zeros.as_ref().map_or(0, HostMemory::len);
        self.arena_bytes() + (blocks + zeros) as u64
    }

    pub fn arena_bytes(&self) -> u64 {
        let sessions = if self.shared { &self.all[..1] } else { &self.all[..] };
        sessions.iter().filter_map(|session| session.session.arena_bytes()).sum()
    }

    /// What the host is told: nothing of a model that does not batch.
    pub fn batch_sizes(&self) -> Vec<BatchSize> {
        if !self.model().plan.batching {
            return Vec::new();
        }
        let size = |(session, time): (&FixedSession, &Duration)| BatchSize {
            rows: u32::try_from(session.rows).unwrap_or(u32::MAX),
            pad: 0,
            run_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1),
        };
        self.all.iter().zip(&self.times).map(size).collect()
    }

    /// The model as any of the sessions has it.
    pub fn model(&self) -> &OnnxModel {
        &self.all[self.current].session.model
    }

    /// The session of the present batch.
    pub fn session(&mut self) -> &mut FixedSession {
        &mut self.all[self.current]
    }

    /// Chooses the session for a batch of this many rows.
    ///
    /// # Errors
    /// They are more than the largest size.
    pub fn choose(&mut self, rows: usize) -> Result<(), PluginFault> {
        let sizes = self.all.iter().map(|session| session.rows);
        let found = find_bucket(sizes, rows).ok_or_else(|| {
            let largest = self.all.last().map_or(0, |session| session.rows);
            PluginFault::invalid(format!(
                "a batch of {rows} rows is larger than the largest prepared size, {largest}"
            ))
        });
        self.current = found?;
        Ok(())
    }

    /// Pads the present batch of this many rows, and runs it.
    pub fn run(&mut self, rows: usize, device: &Device) -> Result<(), PluginFault> {
        let session = &mut self.all[self.current];
        session.pad_inputs(device, rows, self.zeros.as_ref())?;
        let padding = session.rows - rows;
        let ran = session.run().map_err(|fault| explain_fault(fault, device));
        for (counter, rows) in [(&self.rows_counter, rows), (&self.padding_counter, padding)] {
            if let Some(counter) = counter.as_ref().filter(|_| rows > 0) {
                counter.add(rows as f64);
            }
        }
        ran
    }

    /// Adds the outputs that a request asks for.
    pub fn add_requested(
        &self,
        requested: &mut Vec<(usize, bool)>,
        request: Request<'_>,
    ) -> Result<(), PluginFault> {
        add_requested(requested, self.model(), request.requested_outputs())
    }
}
