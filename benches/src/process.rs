//! A server as a child process; its memory, CPU time and context switches from /proc.

use crate::Result;
use crate::load::Target;
use crate::options::{Floor, Options};
use crate::repository;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running server, killed when dropped.
pub struct Process {
    child: Child,
    pub http: Option<SocketAddr>,
    pub grpc: Option<SocketAddr>,
    /// Time from spawn to the line `ready`.
    pub ready_after: Duration,
    /// Holds the log.
    _folder: TempDir,
}

impl Process {
    /// Starts the server with this model repository.
    pub fn server(options: &Options, models: &Path) -> Result<Self> {
        Self::server_with(options, models, &[])
    }

    /// The same, with further flags.
    pub fn server_with(options: &Options, models: &Path, flags: &[&str]) -> Result<Self> {
        let mut command = Command::new(options.dist.join("bin/trtserver"));
        let flag = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
        command
            .arg(flag("model-store", models.to_owned()))
            .arg(flag("backend-dir", options.dist.join("backends")))
            .arg(flag("backend-dir", options.probe.clone()))
            .args(["--http-address=127.0.0.1", "--grpc-address=127.0.0.1"])
            .args(["--http-port=0", "--grpc-port=0", "--metrics-port=0"])
            .arg("--allow-client-shm=true")
            .args(flags);
        start(command)
    }

    pub fn floor(floor: Floor) -> Result<Self> {
        Self::busy_floor(floor, Duration::ZERO)
    }

    /// An echo that keeps its core busy for this long before each response.
    pub fn busy_floor(floor: Floor, busy: Duration) -> Result<Self> {
        let own = std::env::current_exe().map_err(|e| format!("where is this program? {e}"))?;
        let mut command = Command::new(own);
        command.arg(floor.flag()).arg(format!("--busy-ns={}", busy.as_nanos()));
        start(command)
    }

    pub fn target(&self) -> Target {
        Target { http: self.http, grpc: self.grpc, pid: Some(self.id()) }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Memory in MB by its name in /proc/PID/status: VmRSS now, VmHWM at its highest.
    pub fn memory(&self, name: &str) -> Result<f64> {
        memory(self.id(), name)
    }

    /// CPU time of the thread with this name so far.
    pub fn thread_time(&self, name: &str) -> Result<Duration> {
        let folder = format!("/proc/{}/task", self.id());
        for thread in fs::read_dir(&folder).map_err(|e| format!("{folder}: {e}"))?.flatten() {
            let read = |file| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            if read("comm").trim_end() == name {
                let times = read("schedstat");
                let ns = times.split_whitespace().next().and_then(|ns| ns.parse().ok());
                let ns = ns.ok_or_else(|| format!("{folder}: no schedstat"))?;
                return Ok(Duration::from_nanos(ns));
            }
        }
        Err(format!("{folder}: no thread is named {name}"))
    }

    /// Voluntary context switches of its threads so far.
    pub fn switches(&self) -> Result<u64> {
        let folder = format!("/proc/{}/task", self.id());
        let mut sum = 0;
        for thread in fs::read_dir(&folder).map_err(|e| format!("{folder}: {e}"))?.flatten() {
            // Threads that have ended are skipped.
            let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sum += count.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Memory of a process in MB by its name in /proc/PID/status.
pub fn memory(pid: u32, name: &str) -> Result<f64> {
    let file = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kilobytes.map(|n| n * 1024.0 / 1e6).ok_or_else(|| format!("{file} has no {name}"))
}

/// Resets VmHWM for the next row.
pub fn forget_peak(pid: u32) {
    // Not permitted on some systems; then the peak is that of all rows so far.
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// CPU time so far of a process and of those that it has started and that still run: isolated
/// models, and what backends start.
pub fn tree_time(pid: u32) -> Result<Duration> {
    let mut sum = cpu_time(pid)?;
    for child in children(pid) {
        // It may have ended.
        sum += tree_time(child).unwrap_or_default();
    }
    Ok(sum)
}

/// Running processes that a thread of this one has started.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
    // A thread that has ended has none.
    let text: String = lists.map(std::result::Result::unwrap_or_default).collect();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// CPU time of a process so far: user and system, all threads.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    // In nanoseconds from schedstat if available; /proc/PID/stat has hundredths of a second.
    if let Some(nanoseconds) = scheduled(pid) {
        return Ok(Duration::from_nanos(nanoseconds));
    }
    let file = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
    // The name in parentheses may hold anything; user and system time are the 12th and 13th after
    // it.
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}

fn scheduled(pid: u32) -> Option<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        // The time of ended threads is lost; servers keep their threads.
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        sum += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    (sum > 0).then_some(sum)
}

/// A server that does not say when it is ready, killed when dropped.
pub struct Silent {
    child: Child,
    folder: TempDir,
}

impl Silent {
    pub fn start(mut command: Command) -> Result<Self> {
        let folder = repository::empty()?;
        let program = command.get_program().to_string_lossy().into_owned();
        let wrap = |e: std::io::Error| format!("cannot start {program}: {e}");
        let log = File::create(folder.path().join("log")).map_err(wrap)?;
        let output = log.try_clone().map_err(wrap)?;
        let child = command.stdin(Stdio::null()).stdout(output).stderr(log).spawn();
        Ok(Self { child: child.map_err(wrap)?, folder })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The last lines of its log.
    pub fn log_end(&self) -> String {
        log_end(&self.folder.path().join("log"))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // Fails only if it has ended. It ends the processes that it has started.
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

fn log_end(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let last: Vec<&str> = text.lines().rev().take(10).collect();
    last.iter().rev().map(|line| format!("\n    {line}")).collect()
}

fn start(mut command: Command) -> Result<Process> {
    let folder = repository::empty()?;
    let log = folder.path().join("log");
    let program = command.get_program().to_string_lossy().into_owned();
    let wrap = |e: std::io::Error| format!("cannot start {program}: {e}");
    let log_file = File::create(&log).map_err(wrap)?;
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log_file)
        .spawn()
        .map_err(wrap)?;
    let lines = child.stdout.take().map(listen).ok_or("the server has no output")?;
    let mut process =
        Process { child, http: None, grpc: None, ready_after: Duration::ZERO, _folder: folder };
    loop {
        let left = READY_WITHIN.saturating_sub(begin.elapsed());
        let Ok((when, line)) = lines.recv_timeout(left) else {
            let last = log_end(&log);
            return Err(format!("{program} did not become ready; its log ends with:{last}"));
        };
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            ["listening", "http", address] => process.http = address.parse().ok(),
            ["listening", "grpc", address] => process.grpc = address.parse().ok(),
            ["ready"] => {
                process.ready_after = when - begin;
                return Ok(process);
            }
            _ => {}
        }
    }
}

/// Lines with their times; reads to the end, so that the server never blocks.
fn listen(output: impl std::io::Read + Send + 'static) -> Receiver<(Instant, String)> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
            // After the start the receiver is gone.
            let _ = sender.send((Instant::now(), line));
        }
    });
    lines
}
