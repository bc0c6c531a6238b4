//! Opens the sessions of an instance that is prepared for some batch sizes, and warms and measures
//! them.
//!
//! What cannot be had is logged with the reason, and the instance then has one session for batches
//! of any size; where the configuration asks for it by name the model is refused instead.

use super::buckets::{
    BUCKETS, GRAPHS, Switch, bucket_sizes, expect_fixed_inputs, expect_fixed_outputs,
};
use super::fault::explain_fault;
use super::fixed_block::zeroed;
use super::fixed_session::FixedSession;
use super::prepared::{PreparedSessions, note};
use super::row_proof::expect_independent_rows;
use super::session::GpuSession;
use crate::model::{ModelSource, OnnxModel, SessionVariant};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::author::{Counter, Device, Scope};

/// Runs of each size before the first request: the first allocates, the second may capture a graph.
const WARMUP_RUNS: usize = 3;
/// Runs of each size whose shortest time is announced.
const TIMED_RUNS: usize = 3;

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
