//! `trtserver`: arguments, log, server; or one of its two commands. Everything else is in the library.

use std::io::Write;
use std::process::ExitCode;
use trtserver::config::{self, Note};
use trtserver::{log, plugin, server, tool};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(word) if word == "plugin" => return tool::run(words),
        Some(word) if word == "plugin-host" => return plugin::isolated::child::run(),
        _ => {}
    }
    let env = |name: &str| std::env::var(name).ok();
    let abi = format!("{ABI_MAJOR}.{ABI_MINOR}");
    let start = match config::from_args(std::env::args_os(), &env, &abi) {
        Ok(start) => start,
        Err(stop) => {
            let _ = std::io::stdout().write_all(stop.stdout.as_bytes());
            let _ = std::io::stderr().write_all(stop.stderr.as_bytes());
            return ExitCode::from(stop.code);
        }
    };
    if let Err(e) = log::init(&start.settings.log) {
        let _ = writeln!(std::io::stderr(), "the log cannot be opened: {e}");
        return ExitCode::from(1);
    }
    plugin::set_log_level(start.settings.log.plugin_level());
    for note in start.notes {
        match note {
            Note::Info(text) => tracing::info!("{text}"),
            Note::Warning(text) => tracing::warn!("{text}"),
        }
    }
    ExitCode::from(server::run(start.settings))
}
