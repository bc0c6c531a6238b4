//! Starts and stops the CUDA profiler of this process, as `cudaProfilerStart` and
//! `cudaProfilerStop` do for a profiling tool such as Nsight Systems
//! (`--capture-range=cudaProfilerApi`).

use super::driver::GpuDriver;
use trtserver_base::error::Result;

/// Whether the attached tool collects a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfilerCommand {
    Start,
    Stop,
}

impl ProfilerCommand {
    /// Applies to every GPU that this process has used; returns how many these are. Child processes
    /// of isolated models are not affected.
    ///
    /// # Errors
    /// The driver refuses, or lacks the function.
    pub fn apply(self) -> Result<usize> {
        let Ok(driver) = GpuDriver::get() else { return Ok(0) };
        let contexts = driver.devices().iter().map(|device| device.context());
        let used: Vec<_> = contexts.filter(|context| context.is_open()).collect();
        for context in &used {
            let _entered = context.enter()?;
            // SAFETY: the functions have no requirements but a current context.
            let result = unsafe {
                match self {
                    ProfilerCommand::Start => context.api.profiler_start(),
                    ProfilerCommand::Stop => context.api.profiler_stop(),
                }
            };
            context.check(result)?;
        }
        Ok(used.len())
    }
}
