//! What the flags mean: checked and with defaults.

use crate::compare::Requirement;
use crate::engine::Distribution;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use trtserver_client::Tls;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    V1,
    V2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http,
    Grpc,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "HTTP",
            Protocol::Grpc => "gRPC",
        }
    }

    pub fn to_client(self) -> trtserver_client::Protocol {
        match self {
            Protocol::Http => trtserver_client::Protocol::Http,
            Protocol::Grpc => trtserver_client::Protocol::Grpc,
        }
    }
}

/// Whose flags, defaults and lines are used: the name of the program decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    PerfClient,
    TrtserverPerf,
}

/// What varies from one load point to the next.
#[derive(Clone, Debug, PartialEq)]
pub enum Range {
    /// `end` 0: until the latency limit is reached.
    Concurrency {
        start: usize,
        end: usize,
        step: usize,
    },
    Rate {
        start: f64,
        end: f64,
        step: f64,
        distribution: Distribution,
    },
    /// Gaps in microseconds.
    Intervals(Vec<u64>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputData {
    Zero,
    Random,
    Files(Vec<PathBuf>),
}

/// A value of `-u`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// HOST:PORT.
    pub authority: String,
    pub tls: bool,
}

/// All of a measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    pub program: Program,
    pub generation: Generation,
    pub protocol: Protocol,
    pub servers: Vec<Server>,
    /// TLS settings of the servers that are reached over TLS.
    pub tls: Tls,
    pub models: Vec<String>,
    /// Empty: the server chooses.
    pub version: String,
    pub verbose: bool,
    pub batch: usize,
    pub range: Range,
    pub binary_search: bool,
    /// 0: none.
    pub latency_limit_ms: u64,
    pub window: Duration,
    pub max_trials: usize,
    /// As a share: 0.1 is ten percent.
    pub stability: f64,
    pub percentile: Option<u32>,
    /// `None`: asynchronous for stateful models.
    pub asynchronous: Option<bool>,
    pub streaming: bool,
    /// The server's profiler runs during the windows.
    pub profile: bool,
    pub max_threads: Option<usize>,
    pub sequence_length: usize,
    pub sequences: usize,
    pub input: InputData,
    pub shapes: BTreeMap<String, Vec<i64>>,
    pub string_length: usize,
    pub string_data: Option<String>,
    pub shared_memory: bool,
    pub output_shared_memory: usize,
    pub headers: Vec<(String, String)>,
    pub csv: Option<PathBuf>,
    pub json: Option<PathBuf>,
    pub report: Option<PathBuf>,
    pub requirements: Vec<Requirement>,
    pub rounds: usize,
    /// Differences between servers up to this share do not count.
    pub tolerance: f64,
    pub timeout: Duration,
    pub max_connections: usize,
    pub calls_per_connection: usize,
    /// `None`: if stderr is a terminal.
    pub progress: Option<bool>,
    pub seed: u64,
}

/// Judges two results of `--json`.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub before: PathBuf,
    pub after: PathBuf,
    /// Differences up to this share do not count.
    pub tolerance: f64,
}

#[derive(Clone, Debug)]
pub enum Action {
    Measure(Box<Settings>),
    Compare(Comparison),
}

impl Server {
    /// As users see it: the scheme only where it is not the usual one.
    pub fn url(&self, protocol: Protocol) -> String {
        let scheme = match (self.tls, protocol) {
            (false, _) => "",
            (true, Protocol::Http) => "https://",
            (true, Protocol::Grpc) => "grpcs://",
        };
        format!("{scheme}{}", self.authority)
    }
}
