//! CPU time of the load generators: of the child processes that have ended, from /proc/self/stat.

use crate::Result;
use std::time::Duration;

const FILE: &str = "/proc/self/stat";
/// Length of the unit of the file, which Linux fixes for programs.
const TICK: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildCpu {
    pub user: Duration,
    pub system: Duration,
}

impl ChildCpu {
    pub fn since(self, before: ChildCpu) -> ChildCpu {
        ChildCpu {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }
}

/// CPU time of all child processes that were waited for.
pub fn so_far() -> Result<ChildCpu> {
    let stat = std::fs::read_to_string(FILE).map_err(|e| format!("{FILE}: {e}"))?;
    read(&stat).ok_or_else(|| format!("{FILE} has no times of child processes: {stat}"))
}

/// The 14th and 15th field after the name in parentheses.
fn read(stat: &str) -> Option<ChildCpu> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(ChildCpu { user: TICK * ticks()?, system: TICK * ticks()? })
}

#[cfg(test)]
#[path = "child_cpu_tests.rs"]
mod tests;
