//! The log of the process: every record goes to the host, which writes it into its own.

use super::control::{Control, MOST_WORDS};
use crate::log;
use crate::plugin::isolated::messages::{LogRecord, tell};
use crate::plugin::set_log_level;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use trtserver_plugin_api::abi::types::level;

/// Records beyond are not wanted.
static LEVEL: AtomicU32 = AtomicU32::new(level::INFO);

/// From here on events go over `control`.
pub fn start(control: &Arc<Control>) {
    let forward = Forward(Arc::clone(control));
    // Refused only if it was done before.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(forward));
}

/// Takes a level of the plugin interface; plugins read it, too.
pub fn set_level(level: u32) {
    LEVEL.store(level, Ordering::Relaxed);
    set_log_level(level);
    // Every place that logs remembers whether it is on; make them ask again.
    tracing::callsite::rebuild_interest_cache();
}

struct Forward(Arc<Control>);

fn level_of(metadata: &Metadata<'_>) -> u32 {
    match *metadata.level() {
        Level::ERROR => level::ERROR,
        Level::WARN => level::WARNING,
        Level::INFO => level::INFO,
        Level::DEBUG => level::VERBOSE,
        Level::TRACE => level::TRACE,
    }
}

fn wants(metadata: &Metadata<'_>) -> bool {
    let level = level_of(metadata);
    // Details of libraries are for those who look for faults in the server itself.
    let ours = metadata.target().starts_with("trtserver");
    level <= LEVEL.load(Ordering::Relaxed) && (ours || level <= level::INFO)
}

impl<S: Subscriber> Layer<S> for Forward {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if wants(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        wants(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match LEVEL.load(Ordering::Relaxed) {
            0 => LevelFilter::OFF,
            level::ERROR => LevelFilter::ERROR,
            level::WARNING => LevelFilter::WARN,
            level::INFO => LevelFilter::INFO,
            level::VERBOSE => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        })
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (mut text, file, line) = log::parts(event);
        text.truncate(text.floor_char_boundary(MOST_WORDS));
        let level = level_of(event.metadata());
        self.0.tell(tell::What::Log(LogRecord { level, text, file, line }));
    }
}
