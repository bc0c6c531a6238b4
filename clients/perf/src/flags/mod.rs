//! The command line: what the flags mean together, and the checks among them, with perf_client's
//! texts.

mod catalogue; // every flag with its help
mod tls; // flags of TLS
mod values; // values of single flags

pub use catalogue::build_command;

use crate::compare::Requirement;
use crate::settings::{Action, Comparison, Generation, Program, Protocol, Settings};
use clap::ArgMatches;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use values::{input_data, parse_range, parse_servers, parse_shape, parse_version, read_headers};

/// Why there is nothing to do.
pub enum Stop {
    /// Help or version, for stdout.
    Shown(String),
    /// An error of usage.
    Wrong(String),
}

/// # Errors
/// Help, or what is wrong with the arguments.
pub fn parse_flags(
    program: Program,
    args: impl IntoIterator<Item = OsString>,
) -> Result<Action, Stop> {
    let matches =
        build_command(program).try_get_matches_from(args).map_err(|e| match e.exit_code() {
            0 => Stop::Shown(e.render().to_string()),
            _ => {
                let text = e.render().to_string();
                let first = text.lines().next().unwrap_or_default();
                Stop::Wrong(first.trim_start_matches("error: ").to_owned())
            }
        })?;
    meaning(program, &Flags(matches)).map_err(Stop::Wrong)
}

struct Flags(ArgMatches);

impl Flags {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get_one::<String>(name).map(String::as_str)
    }

    fn all(&self, name: &str) -> Vec<&str> {
        self.0.get_many::<String>(name).unwrap_or_default().map(String::as_str).collect()
    }

    fn set(&self, name: &str) -> bool {
        self.0.get_flag(name)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get_one::<PathBuf>(name).cloned()
    }

    fn number<N: std::str::FromStr>(&self, name: &str, usual: N) -> Result<N, String> {
        match self.text(name) {
            None => Ok(usual),
            Some(text) => {
                text.parse().map_err(|_| format!("--{name}: '{text}' is not a valid number"))
            }
        }
    }
}

fn meaning(program: Program, flags: &Flags) -> Result<Action, String> {
    let tolerance = flags.number("tolerance", 2.0)? / 100.0;
    if let Some(files) = flags.0.get_many::<PathBuf>("compare") {
        let files: Vec<&PathBuf> = files.collect();
        let [before, after] = files[..] else { return Err("--compare needs two files".to_owned()) };
        let (before, after) = (before.clone(), after.clone());
        return Ok(Action::Compare(Comparison { before, after, tolerance }));
    }
    let models: Vec<String> = flags.all("model").iter().map(|name| (*name).to_owned()).collect();
    if models.is_empty() {
        return Err("-m flag must be specified".to_owned());
    }
    let protocol = match flags.text("protocol").unwrap_or("HTTP").to_ascii_lowercase().as_str() {
        "http" => Protocol::Http,
        "grpc" => Protocol::Grpc,
        _ => return Err("protocol should be either HTTP or gRPC".to_owned()),
    };
    let generation = match (flags.text("generation"), program) {
        (Some("v1"), _) | (None, Program::PerfClient) => Generation::V1,
        (Some("v2"), _) | (None, Program::TrtserverPerf) => Generation::V2,
        (Some(other), _) => return Err(format!("--generation: '{other}' is neither v1 nor v2")),
    };
    let profile = flags.set("profile");
    if profile && generation == Generation::V2 {
        return Err("-n: v2 has no calls for the profiler; --generation v1 has them".to_owned());
    }
    let streaming = flags.set("streaming");
    if streaming && protocol != Protocol::Grpc {
        return Err("streaming is only allowed with gRPC protocol".to_owned());
    }
    let batch: i64 = flags.number("batch-size", 1)?;
    let window: i64 = flags.number("measurement-interval", 5000)?;
    let max_threads = flags.text("max-threads").map(|_| flags.number("max-threads", 0));
    let percentile: i64 = flags.number("percentile", -1)?;
    if batch <= 0 {
        return Err("batch size must be > 0".to_owned());
    }
    if window <= 0 {
        return Err("measurement window must be > 0 in msec".to_owned());
    }
    if max_threads == Some(Ok(0)) {
        return Err("maximum number of threads must be > 0".to_owned());
    }
    if percentile != -1 && !(1..=99).contains(&percentile) {
        return Err("percentile must be -1 for not reporting or in range (0, 100)".to_owned());
    }
    if flags.set("async") && flags.set("sync") {
        return Err("Both --async and --sync can not be specified simultaneously.".to_owned());
    }
    if streaming && flags.set("sync") {
        return Err("can not use streaming with synchronous API".to_owned());
    }
    let latency_limit_ms = flags.number("latency-threshold", 0)?;
    let binary_search = flags.set("binary-search");
    let range = parse_range(flags, binary_search, latency_limit_ms)?;
    let positive = |name: &str, usual: usize| match flags.number(name, usual)? {
        0 => Err(format!("--{name} must be > 0")),
        number => Ok(number),
    };
    let stability: f64 = flags.number("stability-percentage", 10.0)?;
    let timeout: f64 = flags.number("timeout", 30.0)?;
    let servers = parse_servers(flags, protocol)?;
    Ok(Action::Measure(Box::new(Settings {
        program,
        generation,
        protocol,
        tls: tls::tls_settings(flags, &servers)?,
        servers,
        models,
        version: parse_version(flags)?,
        verbose: flags.0.get_count("verbose") > 0,
        batch: batch as usize,
        range,
        binary_search,
        latency_limit_ms,
        window: Duration::from_millis(window as u64),
        max_trials: positive("max-trials", 10)?,
        stability: stability / 100.0,
        percentile: (percentile != -1).then_some(percentile as u32),
        asynchronous: match (flags.set("async"), flags.set("sync")) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => streaming.then_some(true),
        },
        streaming,
        profile,
        max_threads: max_threads.transpose()?,
        sequence_length: positive("sequence-length", 20)?,
        sequences: positive("num-of-sequences", 4)?,
        input: input_data(flags)?,
        shapes: flags.all("shape").into_iter().map(parse_shape).collect::<Result<_, _>>()?,
        string_length: flags.number("string-length", 128)?,
        string_data: flags.text("string-data").map(str::to_owned),
        shared_memory: match flags.text("shared-memory").unwrap_or("none") {
            "none" => false,
            "system" => true,
            "cuda" => {
                return Err("--shared-memory cuda is not supported: trtserver-perf allocates no GPU memory; \
                            system keeps the tensors in host memory"
                    .to_owned());
            }
            other => return Err(format!("--shared-memory: '{other}' is not none, system or cuda")),
        },
        output_shared_memory: positive("output-shared-memory-size", 100 * 1024)?,
        headers: read_headers(flags)?,
        csv: flags.path("csv"),
        json: flags.path("json"),
        report: flags.path("report"),
        requirements: flags
            .all("require")
            .into_iter()
            .map(Requirement::parse)
            .collect::<Result<_, _>>()?,
        rounds: positive("rounds", 2)?,
        tolerance,
        timeout: Duration::try_from_secs_f64(timeout)
            .ok()
            .filter(|timeout| !timeout.is_zero())
            .ok_or("--timeout must be > 0")?,
        max_connections: positive("max-connections", 256)?,
        calls_per_connection: positive("calls-per-connection", 16)?,
        progress: match (flags.set("progress"), flags.set("no-progress")) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        seed: flags.number("seed", 1)?,
    })))
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
