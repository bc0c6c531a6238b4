//! Logging of the child: forwards every record to the host, which logs it.

use super::control::Control;
use crate::facts::MAX_TEXT;
use crate::messages::{LogRecord, control_message};
use std::sync::Arc;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use trtserver_config::log;
use trtserver_plugin_api::abi::types::level;
use trtserver_plugin_host::host_api::{log_level_set, set_log_level};

/// Forwards all events over `control` from here on.
pub fn start_forwarding(control: &Arc<Control>) {
    let forward = LogForwarder(Arc::clone(control));
    // Fails only if it was set before.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(forward));
}

/// Sets a level of the plugin interface, for the backend and for records of the child: those above
/// it are dropped.
pub fn set_level(level: u32) {
    set_log_level(level);
    // Callsites cache whether they are enabled.
    tracing::callsite::rebuild_interest_cache();
}

struct LogForwarder(Arc<Control>);

fn to_abi_level(metadata: &Metadata<'_>) -> u32 {
    match *metadata.level() {
        Level::ERROR => level::ERROR,
        Level::WARN => level::WARNING,
        Level::INFO => level::INFO,
        Level::DEBUG => level::VERBOSE,
        Level::TRACE => level::TRACE,
    }
}

fn is_enabled(metadata: &Metadata<'_>) -> bool {
    let level = to_abi_level(metadata);
    // Verbose records are limited to our own code.
    let ours = metadata.target().starts_with("trtserver");
    level <= log_level_set() && (ours || level <= level::INFO)
}

impl<S: Subscriber> Layer<S> for LogForwarder {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        is_enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match log_level_set() {
            0 => LevelFilter::OFF,
            level::ERROR => LevelFilter::ERROR,
            level::WARNING => LevelFilter::WARN,
            level::INFO => LevelFilter::INFO,
            level::VERBOSE => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        })
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (mut text, file, line) = log::event_parts(event);
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        let level = to_abi_level(event.metadata());
        self.0.send(control_message::MessageKind::Log(LogRecord { level, text, file, line }));
    }
}
