//! Command line of `trtserver-bench`.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;
use std::time::Duration;

/// Floor servers, run as child processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    Hyper,
    Tonic,
    /// HTTP without a library: receives a body, and sends it.
    Socket,
}

impl Floor {
    /// The flag that runs this program as that server.
    pub fn flag(self) -> &'static str {
        match self {
            Floor::Hyper => "--serve-hyper-echo",
            Floor::Tonic => "--serve-tonic-echo",
            Floor::Socket => "--serve-socket-echo",
        }
    }
}

pub enum Action {
    /// A floor, and how long it is busy with each request.
    Floor(Floor, Duration),
    Measure(Box<Options>),
}

pub struct Options {
    /// A release install, as `cargo xtask build` makes it.
    pub dist: PathBuf,
    /// The folder that holds the probe plugin.
    pub probe: PathBuf,
    /// `examples/models` of this repository.
    pub models: PathBuf,
    /// Folder of perf_analyzer and its libraries.
    pub perf_analyzer: PathBuf,
    /// Triton's own server: `bin` and `backends`.
    pub triton: PathBuf,
    /// Short passes and fewer rows.
    pub quick: bool,
    /// Shows that the rows can be measured, with any build: the figures mean nothing.
    pub check_only: bool,
    /// Length of a pass.
    pub pass: Duration,
    /// Passes of each row, server and floor in turn.
    pub passes: usize,
    /// Rows whose name contains this text.
    pub only: Option<String>,
    pub csv: Option<PathBuf>,
    pub svg: Option<PathBuf>,
    /// Another v2 server: HOST:PORT[,GRPCPORT].
    pub vs: Option<String>,
    pub vs_pid: Option<u32>,
    /// Writes the models for another server into this folder and measures nothing.
    pub write_models: Option<PathBuf>,
}

impl Options {
    pub fn wants(&self, row: &str) -> bool {
        self.only.as_ref().is_none_or(|text| row.contains(text.as_str()))
    }
}

pub fn parse() -> Action {
    let matches = command().get_matches();
    for floor in [Floor::Hyper, Floor::Tonic, Floor::Socket] {
        if matches.get_flag(floor.flag().trim_start_matches("--")) {
            let busy_ns = matches.get_one::<u64>("busy-ns").copied().unwrap_or(0);
            return Action::Floor(floor, Duration::from_nanos(busy_ns));
        }
    }
    let check_only = matches.get_flag("check-only");
    let quick = check_only || matches.get_flag("quick");
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    Action::Measure(Box::new(Options {
        dist: path("dist").unwrap_or_default(),
        probe: path("probe").unwrap_or_default(),
        models: path("models").unwrap_or_default(),
        perf_analyzer: path("perf-analyzer").unwrap_or_default(),
        triton: path("triton").unwrap_or_default(),
        quick,
        check_only,
        pass: match check_only {
            true => Duration::from_millis(20),
            false => seconds(&matches, if quick { 0.25 } else { 1.0 }),
        },
        passes: match check_only {
            true => 1,
            false => matches.get_one::<usize>("passes").copied().unwrap_or(3).max(1),
        },
        only: matches.get_one::<String>("only").cloned(),
        csv: path("csv"),
        svg: path("svg"),
        vs: matches.get_one::<String>("vs").cloned(),
        vs_pid: matches.get_one::<u32>("vs-pid").copied(),
        write_models: path("write-models"),
    }))
}

fn seconds(matches: &ArgMatches, usual: f64) -> Duration {
    let seconds = matches.get_one::<f64>("seconds").copied().unwrap_or(usual);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(1))
}

fn command() -> Command {
    let folder = |name: &'static str, usual: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("DIR")
            .value_parser(value_parser!(PathBuf))
            .default_value(usual)
            .help(help)
    };
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let file = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(value_parser!(PathBuf)).help(help)
    };
    Command::new("trtserver-bench")
        .about("Measures the cost of a request, compared with minimal echo servers")
        .arg(folder("dist", "target/dist", "The release install to measure"))
        .arg(folder("probe", "target/bench/backends", "The folder with the probe plugin"))
        .arg(folder("models", "examples/models", "The models of this repository"))
        .arg(folder(
            "perf-analyzer",
            "target/perf_analyzer",
            "The folder with perf_analyzer and its libraries",
        ))
        .arg(folder(
            "triton",
            "target/triton/opt/tritonserver",
            "The folder of Triton's own server",
        ))
        .arg(flag("quick", "Short passes and fewer rows: the whole run takes less than five minutes"))
        .arg(flag(
            "check-only",
            "Only show that the rows can be measured, with a debug build too: the figures mean nothing",
        ))
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .value_parser(value_parser!(f64))
                .help("Length of a pass (1; with --quick 0.25)"),
        )
        .arg(
            Arg::new("passes")
                .long("passes")
                .value_parser(value_parser!(usize))
                .help("Passes of each row; the median is reported (3)"),
        )
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("TEXT")
                .help("Only rows with this text in their name, such as 'v2-grpc identity 64 c16' or 'scheduler'"),
        )
        .arg(file("csv", "FILE", "Write the tables to this file too"))
        .arg(file("svg", "FILE", "Draw throughput against latency into this file; with --only scaling, growth"))
        .arg(
            Arg::new("vs")
                .long("vs")
                .value_name("HOST:PORT[,GRPCPORT]")
                .help("Compare with another v2 server; it needs the models of --write-models"),
        )
        .arg(
            Arg::new("vs-pid")
                .long("vs-pid")
                .value_name("PID")
                .requires("vs")
                .value_parser(value_parser!(u32))
                .help("Its process, for CPU time and memory (found by its port if it is on this machine)"),
        )
        .arg(file("write-models", "DIR", "Write the models for --vs into this folder and exit"))
        .arg(flag("serve-hyper-echo", "Run the HTTP floor").hide(true))
        .arg(flag("serve-socket-echo", "Run the socket floor").hide(true))
        .arg(flag("serve-tonic-echo", "Run the gRPC floor").hide(true))
        .arg(
            Arg::new("busy-ns")
                .long("busy-ns")
                .value_parser(value_parser!(u64))
                .help("How long a floor is busy with each request")
                .hide(true),
        )
}
