//! The `trtserver` program: reads arguments, sets up the log, runs the server; or runs one of the
//! commands `backend`, `check`, `plugin`, `store` and `plugin-host`.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use trtserver_config::{self as config, BuildFacts, LogSettings, StartNote, log};
use trtserver_isolation::{ProcessLauncher, child};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};
use trtserver_plugin_host::{crash_report, set_log_level, shared_objects};

/// Libraries that report to their vendor unless this variable forbids it before they are opened:
/// ONNX Runtime from 1.31 on. Child processes inherit it.
const NO_TELEMETRY: (&str, &str) = ("ORT_DISABLE_TELEMETRY", "1");

/// Cargo features of this package, for `--version`.
const FEATURES: [(&str, bool); 2] =
    [("object-stores", cfg!(feature = "object-stores")), ("tls", cfg!(feature = "tls"))];

fn main() -> ExitCode {
    let (name, value) = NO_TELEMETRY;
    // SAFETY: this is the first statement of the program and nothing in it starts a thread before,
    // so no other thread reads or writes the environment.
    unsafe { std::env::set_var(name, value) };
    let code = run();
    shared_objects::release_objects();
    code
}

fn run() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(arg) if arg == "backend" => return trtserver_tool::run_backend(args),
        Some(arg) if arg == "check" => return trtserver_tool::check_repository(args),
        Some(arg) if arg == "plugin" => return trtserver_tool::run_tool(args),
        Some(arg) if arg == "store" => return trtserver_tool::store::run_store_check(args),
        Some(arg) if arg == "plugin-host" => return child::run_child(),
        _ => {}
    }
    crash_report::install_handlers();
    let env = |name: &str| std::env::var(name).ok();
    let abi = format!("{ABI_MAJOR}.{ABI_MINOR}");
    let features: Vec<&str> =
        FEATURES.iter().filter(|(_, compiled)| *compiled).map(|(name, _)| *name).collect();
    let facts =
        BuildFacts { abi: &abi, commit: option_env!("TRTSERVER_COMMIT"), features: &features };
    let start = match config::from_args(std::env::args_os(), &env, facts) {
        Ok(start) => start,
        Err(exit) => {
            let _ = std::io::stdout().write_all(exit.stdout.as_bytes());
            let _ = std::io::stderr().write_all(exit.stderr.as_bytes());
            return ExitCode::from(exit.code);
        }
    };
    let launcher = Arc::new(ProcessLauncher::default());
    let processes = Arc::clone(&launcher);
    let backends = move |settings: &LogSettings| {
        set_log_level(settings.plugin_level());
        processes.send_log_level(settings.plugin_level());
    };
    let log = match log::init_log(&start.settings.log, Box::new(backends)) {
        Ok(log) => log,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "cannot open the log: {e}");
            return ExitCode::from(1);
        }
    };
    for note in start.notes {
        match note {
            StartNote::Info(text) => tracing::info!("{text}"),
            StartNote::Warning(text) => tracing::warn!("{text}"),
        }
    }
    ExitCode::from(trtserver_server::run_server(start.settings, log, launcher))
}
