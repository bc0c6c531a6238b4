//! Logging: one line per event, in Triton's default format, its ISO 8601 format, or as JSON.
//!
//! `debug` events are verbosity 1 and `trace` events verbosity 2; those of libraries 3 and 4.
//! Verbose lines carry the letter I and do not depend on the info switch. Levels and format can
//! change at run time. A disabled event costs one comparison.

mod line;
mod recent;

pub use line::{MAX_MESSAGE, cut_text};
pub use recent::{LineLevel, RecentLine, RecentLines};

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::{LogFormat, LogSettings};
use parking_lot::Mutex;
use trtserver_base::request_id;

/// Reads and changes log settings at run time.
#[derive(Clone)]
pub struct LogControl(Arc<CurrentSettings>);

/// Is called with new settings, for the logs of backends, which are not filtered here.
pub type OnChange = Box<dyn Fn(&LogSettings) + Send + Sync>;

struct CurrentSettings {
    info: AtomicBool,
    warning: AtomicBool,
    error: AtomicBool,
    verbose: AtomicU32,
    format: AtomicU8,
    escape: bool,
    file: Option<PathBuf>,
    log_file: Option<Arc<LogFile>>,
    recent: RecentLines,
    on_change: OnChange,
    /// One change at a time.
    change: Mutex<()>,
}

/// Starts logging for the process, and calls `on_change` with the settings. Fails if the file
/// cannot be opened or logging was already started.
pub fn init_log(settings: &LogSettings, on_change: OnChange) -> io::Result<LogControl> {
    let sink = match &settings.file {
        None => LogSink::Stderr,
        Some(path) => {
            let file =
                LogFile { path: path.clone(), file: ArcSwap::from_pointee(open_log_file(path)?) };
            LogSink::File(Arc::new(file))
        }
    };
    let file = match &sink {
        LogSink::File(file) => Some(Arc::clone(file)),
        _ => None,
    };
    let control = LogControl(Arc::new(CurrentSettings::new(settings, on_change, file)));
    let lines = LineLayer { settings: Arc::clone(&control.0), sink, pid: std::process::id() };
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines))
        .map_err(io::Error::other)?;
    (control.0.on_change)(settings);
    Ok(control)
}

struct LogFile {
    path: PathBuf,
    file: ArcSwap<File>,
}

/// Text with fields, file and line of an event, for the host to log on behalf of a child process.
pub fn event_parts(event: &Event<'_>) -> (String, String, u64) {
    let record = line::LogLine::new(event, SystemTime::UNIX_EPOCH, 0);
    (record.text(), record.file, record.line)
}

fn open_log_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|e| {
        io::Error::new(e.kind(), format!("cannot open the log file {}: {e}", path.display()))
    })
}

impl LogControl {
    /// Settings that no log reads yet.
    pub fn new(settings: &LogSettings) -> LogControl {
        LogControl(Arc::new(CurrentSettings::new(settings, Box::new(|_| {}), None)))
    }

    /// Opens the log file anew, after it was renamed. False if the log has no file.
    ///
    /// # Errors
    /// The file cannot be opened; the log goes on in the one before.
    pub fn reopen_log(&self) -> io::Result<bool> {
        let Some(log) = &self.0.log_file else { return Ok(false) };
        log.file.store(Arc::new(open_log_file(&log.path)?));
        Ok(true)
    }

    /// The current settings.
    pub fn settings(&self) -> LogSettings {
        let current = &*self.0;
        LogSettings {
            info: current.info.load(Relaxed),
            warning: current.warning.load(Relaxed),
            error: current.error.load(Relaxed),
            verbose: current.verbose.load(Relaxed),
            format: current.format(),
            file: current.file.clone(),
            escape: current.escape,
        }
    }

    /// The last lines, in memory.
    pub fn recent_lines(&self) -> &RecentLines {
        &self.0.recent
    }

    /// Changes levels and format as `edit` does. The destination does not change.
    pub fn change(&self, edit: impl FnOnce(&mut LogSettings)) {
        let current = &*self.0;
        let _one = current.change.lock();
        let mut settings = self.settings();
        edit(&mut settings);
        current.info.store(settings.info, Relaxed);
        current.warning.store(settings.warning, Relaxed);
        current.error.store(settings.error, Relaxed);
        current.verbose.store(settings.verbose, Relaxed);
        current.format.store(settings.format as u8, Relaxed);
        // tracing caches per call site whether it is enabled.
        tracing::callsite::rebuild_interest_cache();
        (current.on_change)(&settings);
    }
}

impl CurrentSettings {
    fn new(settings: &LogSettings, on_change: OnChange, log_file: Option<Arc<LogFile>>) -> Self {
        Self {
            info: settings.info.into(),
            warning: settings.warning.into(),
            error: settings.error.into(),
            verbose: settings.verbose.into(),
            format: (settings.format as u8).into(),
            escape: settings.escape,
            file: settings.file.clone(),
            log_file,
            recent: RecentLines::default(),
            on_change,
            change: Mutex::new(()),
        }
    }

    fn format(&self) -> LogFormat {
        match self.format.load(Relaxed) {
            f if f == LogFormat::Iso8601 as u8 => LogFormat::Iso8601,
            f if f == LogFormat::Json as u8 => LogFormat::Json,
            _ => LogFormat::Default,
        }
    }

    fn is_enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        // Each crate of the host has a target of its own.
        let is_server = target.starts_with("trtserver");
        let verbose = || self.verbose.load(Relaxed);
        match *metadata.level() {
            Level::ERROR => self.error.load(Relaxed),
            Level::WARN => self.warning.load(Relaxed),
            Level::INFO => self.info.load(Relaxed),
            Level::DEBUG => verbose() >= if is_server { 1 } else { 3 },
            Level::TRACE => verbose() >= if is_server { 2 } else { 4 },
        }
    }

    fn max_level(&self) -> LevelFilter {
        let on = |switch: &AtomicBool| switch.load(Relaxed);
        match self.verbose.load(Relaxed) {
            0 if on(&self.info) => LevelFilter::INFO,
            0 if on(&self.warning) => LevelFilter::WARN,
            0 if on(&self.error) => LevelFilter::ERROR,
            0 => LevelFilter::OFF,
            1 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        }
    }
}

/// Destination. Each line is one write call, so lines of two threads do not mix.
enum LogSink {
    Stderr,
    File(Arc<LogFile>),
    #[cfg(test)]
    Memory(Arc<parking_lot::Mutex<Vec<u8>>>),
}

impl LogSink {
    fn write(&self, line: &str) {
        // A failure to write the log has nowhere to be reported.
        let _ = match self {
            LogSink::Stderr => io::stderr().write_all(line.as_bytes()),
            LogSink::File(log) => {
                let file = log.file.load();
                let mut file: &File = &file;
                file.write_all(line.as_bytes())
            }
            #[cfg(test)]
            LogSink::Memory(bytes) => bytes.lock().write_all(line.as_bytes()),
        };
    }
}

/// The tracing layer that writes lines.
struct LineLayer {
    settings: Arc<CurrentSettings>,
    sink: LogSink,
    pid: u32,
}

impl<S: Subscriber> Layer<S> for LineLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.settings.is_enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.settings.is_enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.settings.max_level())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut record = line::LogLine::new(event, SystemTime::now(), self.pid);
        if let Some(id) = request_id::current_request_id() {
            record.fields.push(("request_id".to_owned(), (&*id).into()));
        }
        self.settings.recent.add(&record);
        self.sink.write(&record.line(self.settings.format(), self.settings.escape));
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
