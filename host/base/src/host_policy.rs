//! Host policies (`--host-policy`): the CPU cores and the memory node of a model's instances.

use crate::error::{Error, Result};
use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The settings of a policy, with Triton's names.
pub const CPU_CORES: &str = "cpu-cores";
pub const NUMA_NODE: &str = "numa-node";

/// Nodes that the kernel can have, 1024, as words of a mask.
const MASK_WORDS: usize = 16;

/// A policy by its name. Without settings it leaves a thread as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPolicy {
    pub name: String,
    /// As they were given: backends read them.
    settings: BTreeMap<String, String>,
    /// Ascending; empty: the cores of the process.
    cores: Vec<u32>,
    node: Option<u32>,
}

impl HostPolicy {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// A policy with settings that [`Self::settings`] returned.
    ///
    /// # Errors
    /// Those of [`Self::set`].
    pub fn from_settings(
        name: &str,
        settings: &BTreeMap<String, String>,
    ) -> std::result::Result<Self, String> {
        let mut policy = Self::new(name);
        settings.iter().try_for_each(|(setting, value)| policy.set(setting, value))?;
        Ok(policy)
    }

    /// Gives a setting a value, in place of an earlier one.
    ///
    /// # Errors
    /// There is no such setting, or it cannot have the value.
    pub fn set(&mut self, setting: &str, value: &str) -> std::result::Result<(), String> {
        match setting {
            CPU_CORES => {
                self.cores = parse_numbers(value, CpuSet::MAX_CPU as u32).ok_or_else(|| {
                    format!(
                        "'{value}' is not a list of CPU cores below {}, such as 0-3,8",
                        CpuSet::MAX_CPU
                    )
                })?;
            }
            NUMA_NODE => {
                let most = MASK_WORDS as u32 * u64::BITS;
                let node = value.parse().ok().filter(|node| *node < most);
                self.node = Some(node.ok_or_else(|| {
                    format!("'{value}' is not the number of a memory node below {most}")
                })?);
            }
            // The sentence is Triton's.
            _ => {
                return Err(format!(
                    "Unsupported host policy setting '{setting}' is specified, supported settings are \
                     '{NUMA_NODE}', '{CPU_CORES}'"
                ));
            }
        }
        self.settings.insert(setting.to_owned(), value.to_owned());
        Ok(())
    }

    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    pub fn has_settings(&self) -> bool {
        !self.settings.is_empty()
    }

    /// The cores of its threads, ascending; empty: those of the process.
    pub fn cores(&self) -> &[u32] {
        &self.cores
    }

    /// Threads for the framework of an instance: at most one for each core.
    pub fn limit_threads(&self, threads: u32) -> u32 {
        if self.cores.is_empty() { threads } else { threads.min(self.cores.len() as u32) }
    }

    pub fn node(&self) -> Option<u32> {
        self.node
    }

    /// For the log: `host policy 'p' (cpu-cores=0-3, numa-node=0)`.
    pub fn describe(&self) -> String {
        let settings = self.settings.iter().map(|(setting, value)| format!("{setting}={value}"));
        let settings: Vec<_> = settings.collect();
        format!("host policy '{}' ({})", self.name, settings.join(", "))
    }

    /// Checks, when the server starts, that threads can be bound: an instance would be refused
    /// otherwise, at some later load.
    ///
    /// # Errors
    /// Names the core or the node that the process cannot use.
    pub fn check_machine(&self) -> Result<()> {
        let own = process_cores().map_err(|e| self.refuse_cores(&e))?;
        if let Some(core) = self.cores.iter().find(|core| !own.contains(core)) {
            let cores = show_numbers(&own);
            return Err(Error::invalid(format!(
                "{}: CPU core {core} is not one that this process may use: those are {cores}",
                self.describe()
            )));
        }
        if self.node.is_none() {
            return Ok(());
        }
        // On a thread of its own, which may keep what it was given.
        let bound = std::thread::scope(|scope| scope.spawn(|| self.bind_thread()).join());
        bound.unwrap_or_else(|_| Err(Error::internal("the check of a host policy panicked")))
    }

    /// Binds this thread, and threads that it will start, to the cores, and the memory that they
    /// allocate to the node.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn bind_thread(&self) -> Result<()> {
        if !self.cores.is_empty() {
            let mut set = CpuSet::new();
            self.cores.iter().for_each(|core| set.set(*core as usize));
            sched_setaffinity(None, &set).map_err(|e| self.refuse_cores(&e))?;
        }
        self.node.map_or(Ok(()), |node| self.bind_memory(node))
    }

    fn bind_memory(&self, node: u32) -> Result<()> {
        let mut mask = [0_u64; MASK_WORDS];
        mask[(node / u64::BITS) as usize] = 1 << (node % u64::BITS);
        // The kernel reads one bit less than it is told.
        let bits = MASK_WORDS * u64::BITS as usize + 1;
        // SAFETY: the call reads `bits` - 1 bits at the pointer, all of the mask, and changes only
        // where the kernel places pages that this thread touches first.
        let code =
            unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, mask.as_ptr(), bits) };
        if code == 0 {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{}: memory cannot be bound to node {node}: {}; /sys/devices/system/node/online lists the nodes, and a \
             container needs CAP_SYS_NICE or a seccomp profile with set_mempolicy",
            self.describe(),
            std::io::Error::last_os_error()
        )))
    }

    fn refuse_cores(&self, error: &rustix::io::Errno) -> Error {
        Error::invalid(format!("{}: CPU cores cannot be chosen: {error}", self.describe()))
    }
}

/// Lets this thread run on all cores of the process. For threads that serve all models and are
/// started by the first that needs them: they would inherit the cores of that model's instance.
/// The first thread of the process is never bound.
pub fn use_process_cores() {
    if let Ok(set) = sched_getaffinity(Some(getpid())) {
        // Refused only where policies cannot bind threads either.
        let _ = sched_setaffinity(None, &set);
    }
}

/// The cores of the calling thread, ascending.
fn process_cores() -> rustix::io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).map(|core| core as u32).collect())
}

/// Numbers and ranges, separated by commas, each below `end`: ascending, each once.
fn parse_numbers(text: &str, end: u32) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= end {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Ascending numbers as the kernel writes them: `0-3,8`.
fn show_numbers(numbers: &[u32]) -> String {
    let mut text = String::new();
    for run in numbers.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = match run {
            [one] => write!(text, "{comma}{one}"),
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [] => Ok(()),
        };
    }
    text
}

#[cfg(test)]
#[path = "host_policy_tests.rs"]
mod tests;
