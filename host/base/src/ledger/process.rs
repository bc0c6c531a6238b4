//! Memory of a process, as the kernel counts it in `/proc/<pid>/status`.

/// Bytes of a process that are in physical memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    pub resident: u64,
    /// The most that was ever resident.
    pub peak: u64,
    /// The parts of `resident`: heap, stacks and private mappings; pages of files; shared memory.
    pub anonymous: u64,
    pub file: u64,
    pub shared: u64,
}

impl ProcessMemory {
    /// Memory of this process.
    pub fn own_process() -> Self {
        Self::read("self").unwrap_or_default()
    }

    /// Memory of another process; `None` once it has exited.
    pub fn from_pid(pid: u32) -> Option<Self> {
        Self::read(&pid.to_string())
    }

    fn read(pid: &str) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Self::parse(&status)
    }

    /// `None` for a process without memory: one that has exited.
    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let kib = line?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
            Some(kib << 10)
        };
        let part = |name| field(name).unwrap_or(0);
        Some(Self {
            resident: field("VmRSS")?,
            peak: part("VmHWM"),
            anonymous: part("RssAnon"),
            file: part("RssFile"),
            shared: part("RssShmem"),
        })
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
