//! CPU pinning of servers and load generators: with one request in flight, placement dominates
//! every figure.

use crate::Result;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;

pub struct Cores {
    servers: Vec<usize>,
    load: Vec<usize>,
}

impl Cores {
    /// Splits the cores of this process: half for the servers, which are measured in turn, the rest
    /// for the load. One core cannot be split.
    pub fn share() -> Result<Self> {
        let own = sched_getaffinity(None).map_err(|e| format!("the own cores: {e}"))?;
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| own.is_set(core)).collect();
        Ok(split(&cores))
    }

    /// Text for the table's heading.
    pub fn describe(&self) -> String {
        match self.is_shared() {
            true => "nothing is pinned: servers and load have one core between them".to_owned(),
            false => format!(
                "servers pinned to core{}, load to core{}",
                listed(&self.servers),
                listed(&self.load)
            ),
        }
    }

    fn is_shared(&self) -> bool {
        self.servers == self.load
    }

    /// Cores of the servers.
    pub fn for_servers(&self) -> usize {
        self.servers.len().max(1)
    }

    /// Threads that a load generator may use.
    pub fn for_load(&self) -> usize {
        self.load.len().max(1)
    }

    /// Starts something on the servers' cores: children and threads inherit the affinity.
    pub fn as_server<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        on(&self.servers, start)
    }

    /// Runs something on the load's cores.
    pub fn as_load<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        on(&self.load, work)
    }

    /// Pins a running server to the servers' cores until the value is dropped.
    pub fn move_server(&self, pid: u32) -> Result<Moved> {
        let folder = format!("/proc/{pid}/task");
        let mut moved = Moved { threads: Vec::new() };
        for thread in fs::read_dir(&folder).map_err(|e| format!("{folder}: {e}"))?.flatten() {
            let id = thread.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
            // The thread may have ended.
            if let Some((id, cores)) =
                id.and_then(|id| Some((id, sched_getaffinity(Some(id)).ok()?)))
            {
                sched_setaffinity(Some(id), &set(&self.servers))
                    .map_err(|e| format!("process {pid} cannot be pinned: {e}"))?;
                moved.threads.push((id, cores));
            }
        }
        Ok(moved)
    }
}

/// Threads of another process; their affinity is restored on drop.
pub struct Moved {
    threads: Vec<(Pid, CpuSet)>,
}

impl Drop for Moved {
    fn drop(&mut self) {
        for (id, cores) in &self.threads {
            // The thread has ended.
            let _ = sched_setaffinity(Some(*id), cores);
        }
    }
}

fn split(cores: &[usize]) -> Cores {
    match cores.split_at(cores.len() / 2) {
        ([], all) => Cores { servers: all.to_vec(), load: all.to_vec() },
        (servers, load) => Cores { servers: servers.to_vec(), load: load.to_vec() },
    }
}

fn set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cores.iter().for_each(|&core| set.set(core));
    set
}

/// Pins this thread while `work` runs.
fn on<T>(cores: &[usize], work: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = sched_getaffinity(None).map_err(|e| format!("the own cores: {e}"))?;
    sched_setaffinity(None, &set(cores)).map_err(|e| format!("cores {cores:?}: {e}"))?;
    let done = work();
    sched_setaffinity(None, &before).map_err(|e| format!("the own cores: {e}"))?;
    done
}

fn listed(cores: &[usize]) -> String {
    let numbers: Vec<String> = cores.iter().map(usize::to_string).collect();
    format!("{} {}", if cores.len() > 1 { "s" } else { "" }, numbers.join(",")).replace("  ", " ")
}

#[cfg(test)]
#[path = "cores_tests.rs"]
mod tests;
