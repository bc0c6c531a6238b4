//! What is counted of traces, of spans and of the access log: their threads and requests write it, the metrics
//! page reads it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of finished traces.
#[derive(Debug, Default)]
pub struct TraceStats {
    dropped: [AtomicU64; TraceDrop::ALL.len()],
}

/// Why a finished trace is missing where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceDrop {
    /// Too many traces waited for the thread of the traces, or for the disk.
    QueueFull,
    /// The trace file could not be written.
    WriteFailed,
}

/// Counters of the exporter of spans.
#[derive(Debug, Default)]
pub struct SpanStats {
    exported: AtomicU64,
    dropped: [AtomicU64; SpanDrop::ALL.len()],
    failures: [AtomicU64; ExportFailure::ALL.len()],
}

/// Why a span was not exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanDrop {
    /// Too many spans waited.
    QueueFull,
    /// All attempts to send its batch failed.
    ExportFailed,
    /// The collector took its batch, but not all spans of it.
    Rejected,
    /// The server ended before it was sent.
    Shutdown,
}

/// Why one attempt to send a batch failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFailure {
    /// No connection, or it broke.
    Unreachable,
    Timeout,
    /// The collector asks to try again later.
    Busy,
    /// The collector refuses the batch for good.
    Refused,
    /// The answer is not one of a collector.
    InvalidAnswer,
}

/// Counters of the access log.
#[derive(Debug, Default)]
pub struct AccessLogStats {
    written: AtomicU64,
    dropped: [AtomicU64; LineDrop::ALL.len()],
}

/// Why a line of the access log was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineDrop {
    /// Too many lines waited.
    QueueFull,
    /// The file could not be written.
    WriteFailed,
}

impl SpanDrop {
    pub const ALL: [Self; 4] =
        [Self::QueueFull, Self::ExportFailed, Self::Rejected, Self::Shutdown];

    /// The label in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::ExportFailed => "export_failed",
            Self::Rejected => "rejected",
            Self::Shutdown => "shutdown",
        }
    }
}

impl ExportFailure {
    pub const ALL: [Self; 5] =
        [Self::Unreachable, Self::Timeout, Self::Busy, Self::Refused, Self::InvalidAnswer];

    /// The label in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::Refused => "refused",
            Self::InvalidAnswer => "invalid_answer",
        }
    }
}

impl TraceDrop {
    pub const ALL: [Self; 2] = [Self::QueueFull, Self::WriteFailed];

    /// The label in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::WriteFailed => "write_failed",
        }
    }
}

impl LineDrop {
    pub const ALL: [Self; 2] = [Self::QueueFull, Self::WriteFailed];

    /// The label in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::WriteFailed => "write_failed",
        }
    }
}

impl TraceStats {
    pub fn count_dropped(&self, reason: TraceDrop, traces: u64) {
        self.dropped[reason as usize].fetch_add(traces, Relaxed);
    }

    pub fn dropped(&self, reason: TraceDrop) -> u64 {
        self.dropped[reason as usize].load(Relaxed)
    }

    pub fn all_dropped(&self) -> u64 {
        TraceDrop::ALL.iter().map(|reason| self.dropped(*reason)).sum()
    }
}

impl SpanStats {
    pub fn count_exported(&self, spans: usize) {
        self.exported.fetch_add(spans as u64, Relaxed);
    }

    pub fn exported(&self) -> u64 {
        self.exported.load(Relaxed)
    }

    pub fn count_dropped(&self, reason: SpanDrop, spans: usize) {
        self.dropped[reason as usize].fetch_add(spans as u64, Relaxed);
    }

    pub fn dropped(&self, reason: SpanDrop) -> u64 {
        self.dropped[reason as usize].load(Relaxed)
    }

    pub fn count_failure(&self, failure: ExportFailure) {
        self.failures[failure as usize].fetch_add(1, Relaxed);
    }

    pub fn failures(&self, failure: ExportFailure) -> u64 {
        self.failures[failure as usize].load(Relaxed)
    }
}

impl AccessLogStats {
    pub fn count_written(&self, lines: usize) {
        self.written.fetch_add(lines as u64, Relaxed);
    }

    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    pub fn count_dropped(&self, reason: LineDrop, lines: usize) {
        self.dropped[reason as usize].fetch_add(lines as u64, Relaxed);
    }

    pub fn dropped(&self, reason: LineDrop) -> u64 {
        self.dropped[reason as usize].load(Relaxed)
    }
}
