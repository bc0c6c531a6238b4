//! Load generators: our own, wrk, h2load, perf_analyzer and trtserver-perf.
//!
//! The programs do not check responses. Our own client checks the same request before and after
//! each of their passes, and the bytes that wrk and h2load received must match the number of
//! responses they counted.

mod child_cpu;
mod h2load;
mod perf_analyzer;
mod trtserver_perf;
mod wrk;

use crate::Result;
use crate::cores::Cores;
use crate::exchange::{Exchange, Wire};
use crate::load::{self, Pass, Target};
use crate::options::Options;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges, floor_exchanges};
use perf_analyzer::PerfAnalyzer;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;
use std::time::Duration;
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Own,
    Wrk,
    H2load,
    PerfAnalyzer,
    /// With this many gRPC calls on a connection.
    TrtserverPerf {
        calls_per_connection: usize,
    },
}

impl Client {
    pub fn name(self) -> &'static str {
        match self {
            Client::Own => "own",
            Client::Wrk => "wrk",
            Client::H2load => "h2load",
            Client::PerfAnalyzer => "perf_analyzer",
            Client::TrtserverPerf { .. } => "trtserver-perf",
        }
    }
}

/// Parameters of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    pub frontend: Frontend,
    pub work: Work,
    pub concurrency: usize,
}

/// Counts of a load generator.
struct Outcome {
    requests: u64,
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
}

pub struct Clients {
    pub cores: Cores,
    wrk: bool,
    h2load: bool,
    perf_analyzer: Result<PerfAnalyzer>,
    trtserver_perf: PathBuf,
    /// Scripts and bodies for the external programs.
    scratch: TempDir,
}

impl Clients {
    pub fn find(options: &Options) -> Result<Self> {
        Ok(Clients {
            cores: Cores::share()?,
            wrk: runs("wrk", "-v"),
            h2load: runs("h2load", "--version"),
            perf_analyzer: PerfAnalyzer::find(&options.perf_analyzer),
            trtserver_perf: options.dist.join("bin/trtserver-perf"),
            scratch: repository::empty()?,
        })
    }

    /// The client for a row: our own instead of a missing program, none if ours cannot measure the
    /// row.
    pub fn instead_of(&self, client: Client) -> Option<Client> {
        match client {
            Client::Wrk if !self.wrk => Some(Client::Own),
            Client::H2load if !self.h2load => Some(Client::Own),
            Client::PerfAnalyzer if self.perf_analyzer.is_err() => None,
            client => Some(client),
        }
    }

    /// Whether the program can be run.
    pub fn has(&self, client: Client) -> bool {
        self.instead_of(client) == Some(client)
    }

    /// Missing programs and how to install them.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let packages: Vec<&str> = [("wrk", self.wrk), ("nghttp2-client", self.h2load)]
            .iter()
            .filter_map(|(package, there)| (!there).then_some(*package))
            .collect();
        if !packages.is_empty() {
            missing.push(format!(
                "the own load generator stands in for what is not installed: apt-get install {}",
                packages.join(" ")
            ));
        }
        if let Err(problem) = &self.perf_analyzer {
            missing.push(format!("no rows of perf_analyzer: {problem}"));
        }
        missing
    }

    /// One pass against a v2 (or v1) server.
    pub fn pass(
        &self,
        client: Client,
        target: &Target,
        workload: Workload,
        length: Duration,
    ) -> Result<Pass> {
        let (exchanges, wire) =
            (exchanges(workload.frontend, workload.work), workload.frontend.wire());
        self.cores.as_load(|| match client {
            Client::Own => load::at(target, wire, &exchanges, workload.concurrency, length),
            Client::PerfAnalyzer => {
                let run = || match &self.perf_analyzer {
                    Ok(program) => program.run(self.scratch.path(), target, workload, length),
                    Err(problem) => Err(problem.clone()),
                };
                checked(target, wire, &exchanges[0], |_| run())
            }
            Client::TrtserverPerf { calls_per_connection } => {
                checked(target, wire, &exchanges[0], |_| {
                    let limits = [self.cores.for_load(), calls_per_connection];
                    let json = self.scratch.path().join("trtserver-perf.json");
                    trtserver_perf::run(
                        &self.trtserver_perf,
                        &json,
                        target,
                        workload,
                        limits,
                        length,
                    )
                })
            }
            _ => self.light(client, target, wire, &exchanges[0], workload.concurrency, length),
        })
    }

    /// One pass against the floor. perf_analyzer and trtserver-perf need the whole protocol.
    pub fn floor_pass(
        &self,
        client: Client,
        target: &Target,
        workload: Workload,
        length: Duration,
    ) -> Result<Option<Pass>> {
        let (exchanges, wire) =
            (floor_exchanges(workload.frontend, workload.work), workload.frontend.wire());
        let pass = self.cores.as_load(|| match client {
            Client::Own => {
                load::at(target, wire, &exchanges, workload.concurrency, length).map(Some)
            }
            Client::PerfAnalyzer | Client::TrtserverPerf { .. } => Ok(None),
            _ => self
                .light(client, target, wire, &exchanges[0], workload.concurrency, length)
                .map(Some),
        });
        pass.map_err(|problem| format!("the floor: {problem}"))
    }

    fn light(
        &self,
        client: Client,
        target: &Target,
        wire: Wire,
        exchange: &Exchange,
        concurrency: usize,
        length: Duration,
    ) -> Result<Pass> {
        let threads = self.cores.for_load().min(concurrency);
        let connections = Connections { concurrency, threads, length };
        let scratch = self.scratch.path();
        match client {
            Client::Wrk => checked(target, wire, exchange, |bytes| {
                wrk::run(scratch, target.http()?, exchange, &connections, bytes)
            }),
            _ => {
                let short = length / 5;
                let own = load::at(target, wire, slice::from_ref(exchange), concurrency, short)?;
                let rate = own.per_second;
                checked(target, wire, exchange, |bytes| {
                    h2load::run(scratch, target.grpc()?, exchange, &connections, rate, bytes)
                })
            }
        }
    }
}

struct Connections {
    concurrency: usize,
    threads: usize,
    length: Duration,
}

impl Connections {
    /// Each connection may have received part of one more response than was counted.
    fn received(
        &self,
        client: &str,
        requests: u64,
        bytes: u64,
        response_bytes: usize,
    ) -> Result<()> {
        let each = response_bytes as u64;
        let most = (requests + self.concurrency as u64) * each;
        if requests > 0 && (requests * each..=most).contains(&bytes) {
            return Ok(());
        }
        Err(format!(
            "wrong responses: {client} received {bytes} bytes for {requests} requests, a correct response has {each}"
        ))
    }
}

/// A pass of a program that does not check responses.
fn checked(
    target: &Target,
    wire: Wire,
    exchange: &Exchange,
    run: impl FnOnce(usize) -> Result<Outcome>,
) -> Result<Pass> {
    let response_bytes = load::check(target, wire, exchange)?;
    let (before, client_before) = (target.cpu()?, child_cpu::so_far()?);
    let outcome = run(response_bytes)?;
    let client = child_cpu::so_far()?.since(client_before);
    let cpu = target.cpu()?.zip(before).map(|(now, then)| now.saturating_sub(then));
    if load::check(target, wire, exchange)? != response_bytes {
        return Err("the same request gets responses of different lengths".into());
    }
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / outcome.requests as f64;
    Ok(Pass {
        per_second: outcome.per_second,
        p50_us: outcome.p50_us,
        p99_us: outcome.p99_us,
        p999_us: f64::NAN,
        max_us: f64::NAN,
        cpu_us: cpu.map_or(f64::NAN, each),
        client_cpu_us: each(client.user + client.system),
        client_user_us: each(client.user),
        response_bytes,
    })
}

/// True if the program exists; some exit with an error after printing their version.
fn runs(program: &str, flag: &str) -> bool {
    Command::new(program).arg(flag).output().is_ok()
}

/// Runs to the end and returns the output.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|e| format!("cannot start {program}: {e}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    match done.status.success() {
        true => Ok(text),
        false => {
            let errors = String::from_utf8_lossy(&done.stderr);
            let printed = format!("{text}\n{errors}");
            let all: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
            let last = all.iter().skip(all.len().saturating_sub(6)).copied();
            Err(format!(
                "{program} failed ({}): {}",
                done.status,
                last.collect::<Vec<_>>().join(" | ")
            ))
        }
    }
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(file, bytes).map_err(|e| format!("cannot write {}: {e}", file.display()))
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
