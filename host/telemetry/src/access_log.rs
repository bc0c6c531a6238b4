//! The access log: a bounded queue of records and the thread that writes them, one line each.
//!
//! Requests never wait for the file: when the queue is full, a record is dropped and counted.

use crate::access_record::AccessRecord;
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use trtserver_base::telemetry_stats::{AccessLogStats, LineDrop};

/// Records that wait.
const MAX_QUEUED: usize = 8192;
/// Lines that are written at once.
const MAX_BATCH: usize = 256;
/// The thread lets records gather for this long, so that most of them wake nobody.
const PAUSE: Duration = Duration::from_millis(5);
/// Interval of lines in the log about lost records.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Writes a line for each request, in the background.
#[derive(Debug)]
pub struct AccessLog {
    /// `None` ends the thread.
    sender: Sender<Option<AccessRecord>>,
    queue: Arc<LineQueue>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// What both ends of the queue share.
#[derive(Debug, Default)]
struct LineQueue {
    length: AtomicUsize,
    /// The file is to be opened anew.
    reopen: AtomicBool,
    stats: Arc<AccessLogStats>,
}

/// Where lines go.
enum LineTarget {
    Stdout,
    File(PathBuf, File),
}

impl AccessLog {
    /// `-` is standard output.
    ///
    /// # Errors
    /// Names the file that cannot be opened.
    pub fn open(path: &Path) -> Result<Self, String> {
        let target = match path.to_str() {
            Some("-") => LineTarget::Stdout,
            _ => LineTarget::File(path.to_owned(), open_file(path)?),
        };
        let queue = Arc::<LineQueue>::default();
        let (sender, receiver) = channel();
        let (alive, ended) = channel();
        let shared = Arc::clone(&queue);
        let writer = move || {
            write_lines(&receiver, target, &shared);
            // First, so that whoever waits for the end finds the queue closed.
            drop(receiver);
            drop(alive);
        };
        let named = std::thread::Builder::new().name("access-log".to_owned());
        named.spawn(writer).map_err(|e| format!("cannot start the access log's thread: {e}"))?;
        Ok(Self { sender, queue, ended: Mutex::new(ended) })
    }

    /// Queues a record; drops and counts it when the queue is full. Never waits for the file.
    pub fn record(&self, record: AccessRecord) {
        let sent = self.queue.length.fetch_add(1, Relaxed) < MAX_QUEUED
            && self.sender.send(Some(record)).is_ok();
        if !sent {
            self.queue.length.fetch_sub(1, Relaxed);
            self.queue.stats.count_dropped(LineDrop::QueueFull, 1);
        }
    }

    pub fn stats(&self) -> &Arc<AccessLogStats> {
        &self.queue.stats
    }

    /// The next line goes to a file that is opened anew, after the old one was renamed.
    pub fn reopen(&self) {
        self.queue.reopen.store(true, Relaxed);
    }

    /// Writes what waits, for at most `limit`. Later records are dropped.
    pub fn shut_down(&self, limit: Duration) {
        // Fails if it was done before.
        let _ = self.sender.send(None);
        let _ = self.ended.lock().recv_timeout(limit);
    }
}

fn open_file(path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|e| format!("--access-log: cannot open {}: {e}", path.display()))
}

fn write_lines(
    receiver: &Receiver<Option<AccessRecord>>,
    mut target: LineTarget,
    queue: &LineQueue,
) {
    let mut lines = Vec::new();
    let (mut logged, mut told): (Option<Instant>, u64) = (None, 0);
    let mut is_open = true;
    while is_open && let Ok(Some(first)) = receiver.recv() {
        let mut count = 0;
        let more = std::iter::from_fn(|| {
            let next = receiver.try_recv().ok()?;
            is_open &= next.is_some();
            next
        });
        for record in std::iter::once(first).chain(more).take(MAX_BATCH) {
            record.write_line(&mut lines);
            count += 1;
        }
        queue.length.fetch_sub(count, Relaxed);
        if queue.reopen.swap(false, Relaxed) {
            target.reopen();
        }
        let written = target.write(&lines);
        match &written {
            Ok(()) => queue.stats.count_written(count),
            Err(_) => queue.stats.count_dropped(LineDrop::WriteFailed, count),
        }
        lines.clear();
        let lost: u64 = LineDrop::ALL.iter().map(|reason| queue.stats.dropped(*reason)).sum();
        if lost > told && logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
            let reason = match written {
                Ok(()) => "they came faster than they can be written".to_owned(),
                Err(e) => format!("{}: {e}", target.name()),
            };
            tracing::warn!("lines of the access log are lost, {lost} so far: {reason}");
            (logged, told) = (Some(Instant::now()), lost);
        }
        if count < MAX_BATCH {
            std::thread::sleep(PAUSE);
        }
    }
}

impl LineTarget {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(lines)?;
                out.flush()
            }
            Self::File(_, file) => file.write_all(lines),
        }
    }

    fn reopen(&mut self) {
        if let Self::File(path, file) = self {
            match open_file(path) {
                Ok(opened) => *file = opened,
                Err(e) => tracing::error!("{e}; the access log goes on in the old file"),
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".to_owned(),
            Self::File(path, _) => path.display().to_string(),
        }
    }
}

#[cfg(test)]
#[path = "access_log_tests.rs"]
mod tests;
