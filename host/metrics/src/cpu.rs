//! Use and memory of the machine's CPUs (`--allow-cpu-metrics`).

use super::cached_reading::CachedReading;
use super::family::FamilyBuilder;
use parking_lot::Mutex;
use prometheus::proto::MetricFamily;
use std::time::Duration;

pub struct CpuMetrics {
    families: CachedReading<Vec<MetricFamily>>,
    /// At the last reading.
    last: Mutex<CpuTimes>,
}

impl CpuMetrics {
    /// Utilization is that of `interval`, first of the time since now.
    pub fn new(interval: Duration) -> Self {
        let now = CpuTimes::now().unwrap_or(CpuTimes { idle: 0, total: 0 });
        Self { families: CachedReading::new(interval), last: Mutex::new(now) }
    }

    pub fn families(&self) -> Vec<MetricFamily> {
        self.families.get(|| self.read())
    }

    fn read(&self) -> Vec<MetricFamily> {
        let mut families = Vec::new();
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        if let Some((total, available)) = machine_memory(&memory) {
            let used = total.saturating_sub(available);
            families.push(FamilyBuilder::single_gauge(
                "nv_cpu_memory_total_bytes",
                "CPU total memory (RAM), in bytes",
                total as f64,
            ));
            families.push(FamilyBuilder::single_gauge(
                "nv_cpu_memory_used_bytes",
                "CPU used memory (RAM), in bytes",
                used as f64,
            ));
        }
        if let Some(now) = CpuTimes::now() {
            let last = std::mem::replace(&mut *self.last.lock(), now);
            let help = "CPU utilization rate [0.0 - 1.0]";
            families.push(FamilyBuilder::single_gauge(
                "nv_cpu_utilization",
                help,
                now.utilization_since(last),
            ));
        }
        families
    }
}

/// Time of all CPUs since the machine was started, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTimes {
    idle: u64,
    total: u64,
}

impl CpuTimes {
    fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// From `/proc/stat`.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guest times are part of user and
        // nice.
        let total = ticks.iter().take(8).sum();
        Some(Self { idle: ticks.get(3)? + ticks.get(4)?, total })
    }

    fn utilization_since(self, last: Self) -> f64 {
        let total = self.total.saturating_sub(last.total);
        let idle = self.idle.saturating_sub(last.idle).min(total);
        if total == 0 { 0.0 } else { (total - idle) as f64 / total as f64 }
    }
}

/// Total and available bytes of the machine, from `/proc/meminfo`.
fn machine_memory(meminfo: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
        Some(kib << 10)
    };
    Some((field("MemTotal")?, field("MemAvailable")?))
}

#[cfg(test)]
#[path = "cpu_tests.rs"]
mod tests;
