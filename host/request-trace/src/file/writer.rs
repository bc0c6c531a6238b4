//! Writes trace files on a thread of its own, so that a disk that hangs holds up nothing else.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use trtserver_base::telemetry_stats::{TraceDrop, TraceStats};

/// Texts and bytes that wait for the disk; further traces are dropped and counted.
const QUEUED: usize = 1024;
const QUEUED_BYTES: usize = 64 << 20;
/// Bytes that are written at once.
const JOINED: usize = 256 << 10;

/// The trace file of the server.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    shared: Arc<WriterState>,
    queue: OnceLock<Option<SyncSender<FileText>>>,
}

#[derive(Debug)]
struct WriterState {
    queued_bytes: AtomicUsize,
    stats: Arc<TraceStats>,
    /// A failure is in the log.
    reported: AtomicBool,
    stopped: AtomicBool,
}

/// What the thread is to do.
#[derive(Debug)]
pub enum FileText {
    /// To the array in the file.
    Append(TraceText),
    /// A file of their own, with the next number.
    Numbered(TraceText),
    /// The server ends.
    Stop,
}

/// Records, separated by commas.
#[derive(Debug, Default)]
pub struct TraceText {
    pub text: String,
    pub traces: u64,
}

impl FileText {
    fn size(&self) -> (usize, u64) {
        match self {
            FileText::Append(records) | FileText::Numbered(records) => {
                (records.text.len(), records.traces)
            }
            FileText::Stop => (0, 0),
        }
    }
}

impl TraceFile {
    /// The file is created with the first trace.
    /// `stats` counts traces that were not written.
    pub fn new(path: &Path, stats: Arc<TraceStats>) -> Self {
        let shared = WriterState {
            queued_bytes: AtomicUsize::new(0),
            stats,
            reported: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        };
        Self { path: path.to_owned(), shared: Arc::new(shared), queue: OnceLock::new() }
    }

    /// Has the thread write a text. Does not block.
    pub fn write(&self, text: FileText) {
        let (len, traces) = text.size();
        let Some(queue) = self.queue.get_or_init(|| self.start()) else {
            self.shared.drop_traces(TraceDrop::WriteFailed, traces, "the thread did not start");
            return;
        };
        let queued = self.shared.queued_bytes.fetch_add(len, Relaxed);
        if (queued > 0 && queued + len > QUEUED_BYTES) || queue.try_send(text).is_err() {
            self.shared.queued_bytes.fetch_sub(len, Relaxed);
            self.shared.drop_traces(TraceDrop::QueueFull, traces, "the disk does not keep up");
        }
    }

    fn start(&self) -> Option<SyncSender<FileText>> {
        let (sender, receiver) = sync_channel(QUEUED);
        let (path, shared) = (self.path.clone(), Arc::clone(&self.shared));
        let run = move || Writer { path, shared, open: None, number: 0 }.run(&receiver);
        let thread = thread::Builder::new().name("trace-file".to_owned()).spawn(run);
        thread.ok().map(|_| sender)
    }

    /// Waits until everything is written, or `deadline`.
    pub fn stop(&self, deadline: Instant) {
        let Some(Some(queue)) = self.queue.get() else { return };
        let mut sent = false;
        while !self.shared.stopped.load(Relaxed) && Instant::now() < deadline {
            sent = sent || queue.try_send(FileText::Stop).is_ok();
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl WriterState {
    /// The first lost trace is reported.
    fn drop_traces(&self, reason: TraceDrop, traces: u64, why: &str) {
        self.stats.count_dropped(reason, traces);
        if !self.reported.swap(true, Relaxed) {
            tracing::error!("traces are missing in the trace file: {why}");
        }
    }
}

/// The state of the thread.
struct Writer {
    path: PathBuf,
    shared: Arc<WriterState>,
    /// The growing file; it ends with the `]` of its array.
    open: Option<File>,
    /// Of the next numbered file.
    number: u64,
}

impl Writer {
    fn run(mut self, queue: &Receiver<FileText>) {
        let mut next = None;
        while let Some(text) = next.take().or_else(|| queue.recv().ok()) {
            let (mut waiting, _) = text.size();
            let (text, later) = join_appended(text, queue, &mut waiting);
            next = later;
            let (_, traces) = text.size();
            let written = match text {
                FileText::Append(records) => self.append(&records.text),
                FileText::Numbered(records) => self.write_numbered(&records.text),
                FileText::Stop => break,
            };
            if let Err(e) = written {
                let why = format!("cannot write '{}': {e}", self.path.display());
                self.shared.drop_traces(TraceDrop::WriteFailed, traces, &why);
            }
            self.shared.queued_bytes.fetch_sub(waiting, Relaxed);
        }
        self.shared.stopped.store(true, Relaxed);
    }

    /// Keeps the array closed, so that the file can be read at any time.
    fn append(&mut self, text: &str) -> io::Result<()> {
        let (file, separator) = match &mut self.open {
            Some(file) => {
                file.seek(SeekFrom::End(-1))?;
                (file, ',')
            }
            None => (self.open.insert(File::create(&self.path)?), '['),
        };
        file.write_all(format!("{separator}\n{text}]").as_bytes())
    }

    fn write_numbered(&mut self, text: &str) -> io::Result<()> {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{}", self.number));
        self.number += 1;
        std::fs::write(path, format!("[\n{text}]"))
    }
}

/// Texts for the growing file that wait already become one, which saves system calls; their bytes
/// are added to `waiting`. Returns what comes behind them, too.
fn join_appended(
    first: FileText,
    queue: &Receiver<FileText>,
    waiting: &mut usize,
) -> (FileText, Option<FileText>) {
    let FileText::Append(mut joined) = first else { return (first, None) };
    while joined.text.len() < JOINED {
        match queue.try_recv() {
            Ok(FileText::Append(records)) => {
                *waiting += records.text.len();
                joined.text.push(',');
                joined.text.push_str(&records.text);
                joined.traces += records.traces;
            }
            Ok(other) => return (FileText::Append(joined), Some(other)),
            Err(_) => break,
        }
    }
    (FileText::Append(joined), None)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
