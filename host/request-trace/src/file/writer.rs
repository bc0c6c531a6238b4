//! Writes trace files on a thread of its own, so that a disk that hangs holds up nothing else.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Texts and bytes that wait for the disk; further traces are dropped and counted.
const QUEUED: usize = 1024;
const QUEUED_BYTES: usize = 64 << 20;

/// The trace file of the server.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    shared: Arc<WriterState>,
    queue: OnceLock<Option<SyncSender<FileText>>>,
}

#[derive(Debug, Default)]
struct WriterState {
    queued_bytes: AtomicUsize,
    dropped: AtomicU64,
    /// A failure is in the log.
    reported: AtomicBool,
    stopped: AtomicBool,
}

/// Records, separated by commas, and where they belong.
#[derive(Debug)]
pub enum FileText {
    /// To the array in the file.
    Append(String),
    /// A file of their own, with the next number.
    Numbered(String),
    /// The server ends.
    Stop,
}

impl FileText {
    fn len(&self) -> usize {
        match self {
            FileText::Append(text) | FileText::Numbered(text) => text.len(),
            FileText::Stop => 0,
        }
    }
}

impl TraceFile {
    /// The file is created with the first trace.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), shared: Arc::default(), queue: OnceLock::new() }
    }

    /// Traces that were not written, because the disk failed or did not keep up.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }

    /// Has the thread write a text. Does not block.
    pub fn write(&self, text: FileText) {
        let Some(queue) = self.queue.get_or_init(|| self.start()) else {
            self.shared.drop_text("the thread did not start");
            return;
        };
        let len = text.len();
        let queued = self.shared.queued_bytes.fetch_add(len, Relaxed);
        if (queued > 0 && queued + len > QUEUED_BYTES) || queue.try_send(text).is_err() {
            self.shared.queued_bytes.fetch_sub(len, Relaxed);
            self.shared.drop_text("the disk does not keep up");
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
    fn drop_text(&self, why: &str) {
        self.dropped.fetch_add(1, Relaxed);
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
        for text in queue {
            let len = text.len();
            let written = match text {
                FileText::Append(text) => self.append(&text),
                FileText::Numbered(text) => self.write_numbered(&text),
                FileText::Stop => break,
            };
            if let Err(e) = written {
                let path = self.path.display();
                self.shared.drop_text(&format!("cannot write '{path}': {e}"));
            }
            self.shared.queued_bytes.fetch_sub(len, Relaxed);
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

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
