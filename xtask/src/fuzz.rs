//! `cargo xtask fuzz`: builds the targets of `fuzz/` for libFuzzer with AddressSanitizer, and runs
//! them one after the other.
//!
//! The pinned toolchain is enough: it carries the sanitizer, and `RUSTC_BOOTSTRAP=1` permits the
//! one flag that selects it. Dependencies are those of the server's lock file.

use crate::command::{Result, cargo, run, say};
use crate::paths::Paths;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `cargo xtask fuzz` runs.
pub struct Options {
    /// Names of targets; all if empty.
    pub targets: Vec<String>,
    /// For each target.
    pub seconds: u64,
}

/// What cargo-fuzz passes, too: counters for edges and comparisons, and readable reports.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebuginfo=line-tables-only",
    "-Cforce-frame-pointers",
    "--cfg",
    "fuzzing",
    "-Zsanitizer=address",
];

/// An input beyond this time is a finding, in seconds.
const INPUT_LIMIT: u64 = 10;
/// Memory beyond this is a finding.
const MEMORY_LIMIT_MB: u64 = 3072;

/// Runs the targets and prints executions and findings of each.
///
/// # Errors
/// A target is unknown or cannot be built, or an input was found that fails.
pub fn fuzz(paths: &Paths, options: &Options) -> Result<()> {
    let all = target_names(&paths.root)?;
    if let Some(unknown) = options.targets.iter().find(|name| !all.contains(name)) {
        return Err(format!("no fuzz target {unknown:?}; there are: {}", all.join(", ")));
    }
    let targets = if options.targets.is_empty() { &all } else { &options.targets };
    let built = build(paths, targets)?;
    let mut report = String::new();
    let mut found = Vec::new();
    for (number, name) in targets.iter().enumerate() {
        let seconds = options.seconds;
        say(format!("fuzz: {} of {}: {name}, {seconds} s", number + 1, targets.len()));
        let run = run_target(paths, &built.join(name), name, seconds)?;
        let result = if run.passed { "no finding" } else { "FINDING" };
        report += &format!("  {name:<24}{:>12} executions  {result}\n", run.executions);
        if !run.passed {
            found.push(format!("{name}: see {}", paths.short(&run.log)));
        }
    }
    eprint!("\n{report}");
    if found.is_empty() { Ok(()) } else { Err(found.join("\n  ")) }
}

/// The targets, in order of their names.
fn target_names(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut names: Vec<_> = entries.flatten().filter_map(|entry| stem(entry.path())).collect();
    names.sort();
    Ok(names)
}

/// Builds the targets; returns their folder.
fn build(paths: &Paths, targets: &[String]) -> Result<PathBuf> {
    let folder = paths.root.join("fuzz");
    // What is fuzzed has the same dependencies as the server.
    let lock = folder.join("Cargo.lock");
    fs::copy(paths.root.join("Cargo.lock"), &lock)
        .map_err(|e| format!("{}: {e}", lock.display()))?;
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let target = paths.target.join("fuzz");
    let mut command = cargo();
    // With `--target`, build scripts and derive macros are built without these flags.
    command.args(["build", "--release", "--target", &triple]).current_dir(&folder);
    command.args(targets.iter().flat_map(|name| ["--bin", name]));
    command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", &target);
    command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    run(&mut command, "libFuzzer needs a C++ compiler: install g++")?;
    Ok(target.join(triple).join("release"))
}

struct TargetRun {
    executions: u64,
    passed: bool,
    log: PathBuf,
}

/// Runs one target. New inputs go to `target/fuzz/corpus`, an input that fails to
/// `target/fuzz/findings`.
fn run_target(paths: &Paths, program: &Path, name: &str, seconds: u64) -> Result<TargetRun> {
    let folder = |kind: &str| {
        let folder = paths.target.join("fuzz").join(kind);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok::<_, String>(folder)
    };
    let corpus = folder(&format!("corpus/{name}"))?;
    let prefix = folder("findings")?.join(format!("{name}-"));
    let log = folder("logs")?.join(format!("{name}.log"));
    let file = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let mut command = Command::new(program);
    command
        .args([&corpus, &paths.root.join("fuzz/seeds").join(name)])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}", prefix.display()))
        .arg(format!("-timeout={INPUT_LIMIT}"))
        .arg(format!("-rss_limit_mb={MEMORY_LIMIT_MB}"))
        // Contexts that targets share are leaked on purpose.
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .arg("-print_final_stats=1")
        // Targets that create files do so here.
        .current_dir(folder("work")?)
        .stdout(file.try_clone().map_err(|e| format!("{}: {e}", log.display()))?)
        .stderr(file);
    let status = command.status().map_err(|e| format!("{}: {e}", program.display()))?;
    let text = fs::read(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let executions = executions(&String::from_utf8_lossy(&text));
    Ok(TargetRun { executions, passed: status.success() && executions > 0, log })
}

/// The executions that libFuzzer reports: in its statistics, or in its last progress line if it was
/// ended.
fn executions(log: &str) -> u64 {
    let total = |line: &str| {
        let total = line.strip_prefix("stat::number_of_executed_units:")?;
        total.trim().parse().ok()
    };
    let progress =
        |line: &str| line.strip_prefix('#')?.split_once(char::is_whitespace)?.0.parse().ok();
    log.lines().rev().find_map(|line| total(line).or_else(|| progress(line))).unwrap_or(0)
}

#[cfg(test)]
#[path = "fuzz_tests.rs"]
mod tests;
