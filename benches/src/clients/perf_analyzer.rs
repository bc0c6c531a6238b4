//! perf_analyzer, for v2 servers. It needs much of a core itself, so its rows show what its users
//! see rather than the cost of the server.

use super::{Outcome, Workload, output, write};
use crate::Result;
use crate::load::Target;
use crate::requests::Frontend;
use crate::status;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Measurements before it accepts a result.
const WINDOWS: u32 = 3;

pub struct PerfAnalyzer {
    program: PathBuf,
    /// Folder of its libraries.
    libraries: OsString,
}

impl PerfAnalyzer {
    /// In `folder`, with its libraries.
    pub fn find(folder: &Path) -> Result<Self> {
        let program = folder.join("perf_analyzer");
        if !program.exists() {
            return Err(format!("{} is not there", program.display()));
        }
        let mut folders = vec![folder.to_owned()];
        let more = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&more));
        let libraries = std::env::join_paths(folders).map_err(|e| e.to_string())?;
        let found = PerfAnalyzer { program, libraries };
        output(found.command().arg("--version")).map(|_| found)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("LD_LIBRARY_PATH", &self.libraries);
        command
    }

    pub fn run(
        &self,
        scratch: &Path,
        target: &Target,
        workload: Workload,
        length: Duration,
    ) -> Result<Outcome> {
        let (input, table) =
            (scratch.join("perf_analyzer.json"), scratch.join("perf_analyzer.csv"));
        write(&input, workload.work.perf_analyzer_json().to_string().as_bytes())?;
        let _ = fs::remove_file(&table);
        let (address, protocol) = match workload.frontend {
            Frontend::V2Http => (target.http()?, "http"),
            Frontend::V2Grpc | Frontend::V2Stream => (target.grpc()?, "grpc"),
            frontend => return Err(format!("perf_analyzer does not speak {}", frontend.name())),
        };
        let model = workload.work.model();
        // A window must hold a few responses of the largest tensors.
        let window = (length / WINDOWS).max(Duration::from_millis(500)).as_millis();
        let mut command = self.command();
        command
            .args(["-m", model, "-i", protocol, "-u"])
            .arg(address.to_string())
            .arg(format!("--concurrency-range={}", workload.concurrency))
            .arg(format!("--input-data={}", input.display()))
            .arg(format!("--measurement-interval={window}"))
            // The spread of several runs is shown instead.
            .args(["--stability-percentage=999", &format!("--max-trials={WINDOWS}"), "-f"])
            .arg(&table);
        if workload.frontend == Frontend::V2Stream {
            command.arg("--streaming");
        }
        // Its own count covers its last windows only.
        let http = target.http()?;
        let before = status::successful_requests(http, model)?;
        output(&mut command)?;
        let requests = status::successful_requests(http, model)?.saturating_sub(before);
        let text = fs::read_to_string(&table).map_err(|e| format!("{}: {e}", table.display()))?;
        let column = |name| {
            column(&text, name)
                .ok_or_else(|| format!("perf_analyzer's table has no '{name}': {text}"))
        };
        Ok(Outcome {
            requests: requests.max(1),
            per_second: column("Inferences/Second")?,
            p50_us: column("p50 latency")?,
            p99_us: column("p99 latency")?,
        })
    }
}

/// The number in the column with this heading.
fn column(table: &str, name: &str) -> Option<f64> {
    let mut lines = table.lines();
    let at = lines.next()?.split(',').position(|head| head == name)?;
    lines.next()?.split(',').nth(at)?.parse().ok()
}

#[cfg(test)]
#[path = "perf_analyzer_tests.rs"]
mod tests;
