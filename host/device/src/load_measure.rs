//! What loading models takes of the memory of a GPU, which frameworks allocate by themselves: the
//! difference of its free memory before and after.
//!
//! Loads that overlap cannot be told apart, so they are measured together, from the beginning of the
//! first to the end of the last. What other programs allocate meanwhile is part of the difference.

use super::gpu::GpuDevice;
use std::sync::{Arc, OnceLock};

/// The result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadGrowth {
    /// CUDA ordinal of the GPU.
    pub device: i32,
    /// Bytes that are no longer free; 0 if there are more free than before.
    pub bytes: u64,
    /// Loads that were measured together.
    pub loads: usize,
}

/// Set once the last of the loads that overlap has ended.
pub type GrowthResult = Arc<OnceLock<LoadGrowth>>;

/// The loads in progress on one GPU.
#[derive(Default)]
pub(super) struct LoadGroup {
    free_before: u64,
    open: usize,
    results: Vec<GrowthResult>,
}

impl LoadGroup {
    /// A load begins. `free` tells the free bytes of the GPU, unless others are in progress.
    fn begin(&mut self, free: impl FnOnce() -> Option<u64>) -> Option<GrowthResult> {
        if self.open == 0 {
            self.free_before = free()?;
            self.results.clear();
        }
        self.open += 1;
        let result = GrowthResult::default();
        self.results.push(Arc::clone(&result));
        Some(result)
    }

    /// A load ends.
    fn end(&mut self, device: i32, free: impl FnOnce() -> Option<u64>) {
        self.open = self.open.saturating_sub(1);
        if self.open > 0 {
            return;
        }
        let (results, before) = (std::mem::take(&mut self.results), self.free_before);
        let Some(free) = free() else { return };
        let growth =
            LoadGrowth { device, bytes: before.saturating_sub(free), loads: results.len() };
        for result in results {
            let _ = result.set(growth);
        }
    }
}

/// A load in progress; it ends when this is dropped.
pub struct LoadMeasure {
    device: &'static GpuDevice,
    result: GrowthResult,
}

impl LoadMeasure {
    /// Begins to measure; creates the context of the GPU. `None`: the GPU does not tell.
    pub fn begin(device: &'static GpuDevice) -> Option<Self> {
        let free = || device.memory_info().ok().map(|(free, _)| free);
        let result = device.loads.lock().begin(free)?;
        Some(Self { device, result })
    }

    pub fn result(&self) -> GrowthResult {
        Arc::clone(&self.result)
    }
}

impl Drop for LoadMeasure {
    fn drop(&mut self) {
        let device = self.device;
        let free = || device.memory_info().ok().map(|(free, _)| free);
        device.loads.lock().end(device.ordinal, free);
    }
}

#[cfg(test)]
#[path = "load_measure_tests.rs"]
mod tests;
