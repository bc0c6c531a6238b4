//! The sessions of an instance that is prepared for some batch sizes.

use super::buckets::find_bucket;
use super::fault::explain_fault;
use super::fixed_session::FixedSession;
use crate::model::{ModelSource, OnnxModel};
use crate::outputs::add_requested;
use std::time::Duration;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::author::{BatchSize, Counter, Device, HostMemory, Request, Scope};

/// Made by `open_prepared.rs`.
pub struct PreparedSessions {
    /// By size, ascending.
    pub all: Vec<FixedSession>,
    pub times: Vec<Duration>,
    /// Zeros for padding.
    pub zeros: Option<HostMemory>,
    /// All sizes are graphs of one session.
    pub shared: bool,
    /// The session of the present batch.
    pub current: usize,
    pub rows_counter: Option<Counter>,
    pub padding_counter: Option<Counter>,
}

impl PreparedSessions {
    /// One line that says what the sessions are and cost.
    pub fn describe(
        &self,
        source: &ModelSource,
        (device, scope): (&Device, &Scope),
        graph: bool,
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

/// A line of the log about a model.
pub fn note(source: &ModelSource, scope: &Scope, text: std::fmt::Arguments<'_>) {
    scope.info(format_args!("model '{}': {text}", source.config.model));
}
