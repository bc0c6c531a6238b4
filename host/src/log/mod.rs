//! The log: one line per event, in the form of the old server, in ISO 8601, or as JSON.
//!
//! `debug` events are verbosity 1 and `trace` events verbosity 2; libraries get theirs at 3 and 4.
//! Verbose lines carry the letter I and do not depend on whether information is logged. Levels and
//! form can change while the server runs; an event that is off costs one comparison.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::SystemTime;

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::config::{LogFormat, LogSettings};

/// Changes what is logged while the server runs, and says what it is now.
#[derive(Clone, Debug)]
pub struct LogControl(Arc<Switches>);

#[derive(Debug)]
struct Switches {
    info: AtomicBool,
    warning: AtomicBool,
    error: AtomicBool,
    verbose: AtomicU32,
    format: AtomicU8,
    escape: bool,
    file: Option<PathBuf>,
}

/// Starts logging for the whole process. Fails when the file cannot be opened, or when logging was
/// started before.
pub fn init(settings: &LogSettings) -> io::Result<LogControl> {
    let sink = match &settings.file {
        None => Sink::Stderr,
        Some(path) => Sink::File(open(path)?),
    };
    let control = LogControl::new(settings);
    let lines = Lines { switches: Arc::clone(&control.0), sink, pid: std::process::id() };
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines))
        .map_err(io::Error::other)?;
    Ok(control)
}

/// An event for another process to log: its text with its fields, file and line.
pub fn told(event: &Event<'_>) -> (String, String, u64) {
    let record = line::Record::new(event, SystemTime::UNIX_EPOCH, 0);
    (record.text(), record.file, record.line)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|e| {
        io::Error::new(e.kind(), format!("cannot open the log file {}: {e}", path.display()))
    })
}

impl LogControl {
    fn new(settings: &LogSettings) -> LogControl {
        LogControl(Arc::new(Switches {
            info: settings.info.into(),
            warning: settings.warning.into(),
            error: settings.error.into(),
            verbose: settings.verbose.into(),
            format: (settings.format as u8).into(),
            escape: settings.escape,
            file: settings.file.clone(),
        }))
    }

    /// What is in force now.
    pub fn settings(&self) -> LogSettings {
        let switches = &*self.0;
        LogSettings {
            info: switches.info.load(Relaxed),
            warning: switches.warning.load(Relaxed),
            error: switches.error.load(Relaxed),
            verbose: switches.verbose.load(Relaxed),
            format: switches.format(),
            file: switches.file.clone(),
            escape: switches.escape,
        }
    }

    /// Takes levels and format from `settings`; where the log goes stays as it was.
    pub fn change(&self, settings: &LogSettings) {
        let switches = &*self.0;
        switches.info.store(settings.info, Relaxed);
        switches.warning.store(settings.warning, Relaxed);
        switches.error.store(settings.error, Relaxed);
        switches.verbose.store(settings.verbose, Relaxed);
        switches.format.store(settings.format as u8, Relaxed);
        // Every place that logs remembers whether it is on; make them ask again.
        tracing::callsite::rebuild_interest_cache();
    }
}

impl Switches {
    fn format(&self) -> LogFormat {
        match self.format.load(Relaxed) {
            f if f == LogFormat::Iso8601 as u8 => LogFormat::Iso8601,
            f if f == LogFormat::Json as u8 => LogFormat::Json,
            _ => LogFormat::Default,
        }
    }

    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        let ours = target == "trtserver" || target.starts_with("trtserver::");
        let verbose = || self.verbose.load(Relaxed);
        match *metadata.level() {
            Level::ERROR => self.error.load(Relaxed),
            Level::WARN => self.warning.load(Relaxed),
            Level::INFO => self.info.load(Relaxed),
            Level::DEBUG => verbose() >= if ours { 1 } else { 3 },
            Level::TRACE => verbose() >= if ours { 2 } else { 4 },
        }
    }

    fn most(&self) -> LevelFilter {
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

/// Where lines go. Each is written by one call, so lines of two threads do not mix.
enum Sink {
    Stderr,
    File(File),
    #[cfg(test)]
    Memory(Arc<crate::sync::Mutex<Vec<u8>>>),
}

impl Sink {
    fn write(&self, line: &str) {
        // There is nowhere to report a log that cannot be written.
        let _ = match self {
            Sink::Stderr => io::stderr().write_all(line.as_bytes()),
            Sink::File(file) => {
                let mut file: &File = file;
                file.write_all(line.as_bytes())
            }
            #[cfg(test)]
            Sink::Memory(bytes) => bytes.lock().write_all(line.as_bytes()),
        };
    }
}

/// The layer that writes lines.
struct Lines {
    switches: Arc<Switches>,
    sink: Sink,
    pid: u32,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.switches.wants(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.switches.wants(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.switches.most())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let record = line::Record::new(event, SystemTime::now(), self.pid);
        self.sink.write(&record.line(self.switches.format(), self.switches.escape));
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
