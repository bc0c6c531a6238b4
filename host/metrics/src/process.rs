//! Metrics of the server's process, under the names that Prometheus' client libraries use.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

pub fn read_process_families() -> Vec<MetricFamily> {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut families = Vec::new();
    if let Some(stat) = ProcessStat::parse(&file("/proc/self/stat")) {
        let ticks = clock_ticks_per_second() as f64;
        let mut cpu = FamilyBuilder::counter(
            "process_cpu_seconds_total",
            "Total user and system CPU time spent in seconds",
        );
        cpu.put(&Labels::new(), stat.cpu_ticks as f64 / ticks);
        families.push(cpu.done());
        let gauges = [
            ("process_threads", "Number of OS threads in the process", stat.threads as f64),
            (
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes",
                stat.virtual_bytes as f64,
            ),
            (
                "process_resident_memory_bytes",
                "Resident memory size in bytes",
                (stat.resident_pages * page_size() as u64) as f64,
            ),
        ];
        let gauge = |(name, help, value)| FamilyBuilder::single_gauge(name, help, value);
        families.extend(gauges.map(gauge));
        if let Some(boot) = boot_time(&file("/proc/stat")) {
            families.push(FamilyBuilder::single_gauge(
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds",
                boot as f64 + stat.start_ticks as f64 / ticks,
            ));
        }
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        families.push(FamilyBuilder::single_gauge(
            "process_open_fds",
            "Number of open file descriptors",
            // Without the descriptor of this listing.
            open.count().saturating_sub(1) as f64,
        ));
    }
    if let Some(max) = getrlimit(Resource::Nofile).current {
        families.push(FamilyBuilder::single_gauge(
            "process_max_fds",
            "Maximum number of open file descriptors",
            max as f64,
        ));
    }
    families
}

/// Fields of `/proc/self/stat`.
#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    /// CPU time in user and kernel mode.
    cpu_ticks: u64,
    threads: u64,
    /// Start time of the process after the boot of the machine.
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl ProcessStat {
    fn parse(stat: &str) -> Option<Self> {
        // The name, in parentheses, may contain spaces and parentheses.
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // Numbered as in proc(5), where the first one after the name is 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// Seconds since the epoch, from `/proc/stat`.
fn boot_time(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
