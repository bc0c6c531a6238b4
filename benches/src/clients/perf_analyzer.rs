//! perf_analyzer, for whatever speaks v2. It takes much of a core itself, so its rows say more about what its users
//! see than about the server.

use super::{Ask, Outcome, output, write};
use crate::Result;
use crate::load::Target;
use crate::requests::Front;
use crate::status;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// It measures so often before it believes itself.
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
        match output(found.command().arg("--version")) {
            Ok(_) => Ok(found),
            Err(problem) if problem.contains("libb64") => {
                Err(format!("{problem} (apt-get install libb64-0d)"))
            }
            Err(problem) => Err(problem),
        }
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
        ask: Ask,
        length: Duration,
    ) -> Result<Outcome> {
        let (input, table) =
            (scratch.join("perf_analyzer.json"), scratch.join("perf_analyzer.csv"));
        write(&input, ask.work.perf_analyzer_json().to_string().as_bytes())?;
        let _ = fs::remove_file(&table);
        let (address, protocol) = match ask.front {
            Front::V2Http => (target.http()?, "http"),
            Front::V2Grpc | Front::V2Stream => (target.grpc()?, "grpc"),
            front => return Err(format!("perf_analyzer does not speak {}", front.name())),
        };
        let model = ask.work.model();
        // A window must hold a few responses of the largest tensors.
        let window = (length / WINDOWS).max(Duration::from_millis(500)).as_millis();
        let mut command = self.command();
        command
            .args(["-m", model, "-i", protocol, "-u"])
            .arg(address.to_string())
            .arg(format!("--concurrency-range={}", ask.concurrency))
            .arg(format!("--input-data={}", input.display()))
            .arg(format!("--measurement-interval={window}"))
            // The spread of several runs is shown instead.
            .args(["--stability-percentage=999", &format!("--max-trials={WINDOWS}"), "-f"])
            .arg(&table);
        if ask.front == Front::V2Stream {
            command.arg("--streaming");
        }
        // Its own count covers its last windows only.
        let http = target.http()?;
        let before = status::answered(http, model)?;
        output(&mut command)?;
        let requests = status::answered(http, model)?.saturating_sub(before);
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
