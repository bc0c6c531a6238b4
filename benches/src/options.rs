//! The command line.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;
use std::time::Duration;

/// The barest servers, run as children of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    Hyper,
    Tonic,
}

impl Floor {
    /// The flag that makes this program be that server.
    pub fn flag(self) -> &'static str {
        match self {
            Floor::Hyper => "--serve-hyper-echo",
            Floor::Tonic => "--serve-tonic-echo",
        }
    }
}

pub enum Action {
    Floor(Floor),
    Measure(Options),
}

pub struct Options {
    /// A release install, as `cargo xtask build` makes it.
    pub dist: PathBuf,
    /// The folder that holds the probe plugin.
    pub probe: PathBuf,
    /// `examples/models` of this repository.
    pub models: PathBuf,
    /// How long one pass is measured.
    pub pass: Duration,
    /// Passes of each row, server and floor in turn.
    pub passes: usize,
    /// Only rows with this text in their name.
    pub only: Option<String>,
    pub csv: Option<PathBuf>,
}

impl Options {
    pub fn wants(&self, row: &str) -> bool {
        self.only.as_ref().is_none_or(|text| row.contains(text.as_str()))
    }
}

pub fn parse() -> Action {
    let matches = command().get_matches();
    if matches.get_flag("serve-hyper-echo") {
        return Action::Floor(Floor::Hyper);
    }
    if matches.get_flag("serve-tonic-echo") {
        return Action::Floor(Floor::Tonic);
    }
    let quick = matches.get_flag("quick");
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    Action::Measure(Options {
        dist: path("dist").unwrap_or_default(),
        probe: path("probe").unwrap_or_default(),
        models: path("models").unwrap_or_default(),
        pass: seconds(&matches, if quick { 0.25 } else { 1.0 }),
        passes: matches.get_one::<usize>("passes").copied().unwrap_or(3).max(1),
        only: matches.get_one::<String>("only").cloned(),
        csv: path("csv"),
    })
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
    Command::new("trtserver-bench")
        .about("What a request costs the server, beside the barest servers of the same kind")
        .arg(folder("dist", "target/dist", "The release install to measure"))
        .arg(folder("probe", "target/bench/backends", "The folder with the probe plugin"))
        .arg(folder("models", "examples/models", "The models of this repository"))
        .arg(flag("quick", "Short passes: the whole run takes less than four minutes"))
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
        .arg(
            Arg::new("csv")
                .long("csv")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the tables to this file too"),
        )
        .arg(flag("serve-hyper-echo", "Be the HTTP floor").hide(true))
        .arg(flag("serve-tonic-echo", "Be the gRPC floor").hide(true))
}
