//! CUDA driver, loaded at run time through cudarc: number of GPUs, and the streams of a GPU instance.

use super::StreamPriority;
use crate::error::{Error, Result};
use cudarc::driver::{CudaContext, CudaStream, result, sys};
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

/// Number of GPUs that the driver reports; 0 without a driver.
pub fn gpu_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        // Every cudarc call panics if there is no driver.
        // SAFETY: only tries to load the driver library.
        if !unsafe { sys::is_culib_present() } {
            return 0;
        }
        // The driver library may be installed on a machine without a GPU.
        std::panic::catch_unwind(|| CudaContext::device_count().unwrap_or(0))
            .map_or(0, |n| n.max(0) as usize)
    })
}

/// Ordinal, name and compute capability of each GPU.
pub fn gpus() -> Vec<(i32, String, (i32, i32))> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let facts = |ordinal: i32| {
        let device = result::device::get(ordinal)?;
        let name = result::device::get_name(device)?;
        // SAFETY: the driver has just returned the device.
        let attribute = |which| unsafe { result::device::get_attribute(device, which) };
        Ok::<_, cudarc::driver::DriverError>((
            ordinal,
            name,
            (attribute(MAJOR)?, attribute(MINOR)?),
        ))
    };
    (0..gpu_count() as i32).filter_map(|ordinal| facts(ordinal).ok()).collect()
}

/// The primary context and three streams of a GPU instance; empty for a CPU instance.
#[derive(Default)]
pub struct Streams {
    gpu: Option<Gpu>,
}

struct Gpu {
    context: Arc<CudaContext>,
    /// Compute, copy in, copy out.
    streams: [Arc<CudaStream>; 3],
    /// Of all three streams; lower values take precedence.
    priority: i32,
}

impl Streams {
    /// Creates the streams of an instance and binds the device to this thread.
    ///
    /// # Errors
    /// The instance is on a GPU and the driver or the device is missing.
    pub fn for_instance(gpu: bool, device: i32, priority: StreamPriority) -> Result<Self> {
        if !gpu {
            return Ok(Self::default());
        }
        let count = gpu_count();
        if device < 0 || device as usize >= count {
            return Err(Error::invalid(format!(
                "GPU {device} is not available: this machine has {count} GPUs"
            )));
        }
        let fail = |e: cudarc::driver::DriverError| Error::internal(format!("GPU {device}: {e}"));
        let context = CudaContext::new(device as usize).map_err(fail)?;
        context.bind_to_thread().map_err(fail)?;
        let priority = match priority {
            StreamPriority::Default => 0,
            // The range is (0, 0) if the device does not support priorities.
            StreamPriority::Least => result::stream::get_priority_range().map_err(fail)?.0,
            StreamPriority::Greatest => result::stream::get_priority_range().map_err(fail)?.1,
        };
        let stream = || context.new_stream_with_priority(priority).map_err(fail);
        let streams = [stream()?, stream()?, stream()?];
        Ok(Self { gpu: Some(Gpu { context, streams, priority }) })
    }

    /// Requested stream priority; `None` without a GPU.
    pub fn priority(&self) -> Option<i32> {
        self.gpu.as_ref().map(|gpu| gpu.priority)
    }

    /// Driver handles for the backend: context, compute, copy in, copy out; null without a GPU.
    pub fn handles(&self) -> [*mut u8; 4] {
        match &self.gpu {
            None => [null_mut(); 4],
            Some(gpu) => {
                let [compute, copy_in, copy_out] = &gpu.streams;
                [
                    gpu.context.cu_ctx().cast(),
                    compute.cu_stream().cast(),
                    copy_in.cu_stream().cast(),
                    copy_out.cu_stream().cast(),
                ]
            }
        }
    }
}
