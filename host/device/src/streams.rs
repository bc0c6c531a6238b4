//! The streams of a GPU instance: compute, copy in, copy out, and the callbacks behind their work.

use super::StreamPriority;
use super::completion::{Callback, CompletionThread};
use super::driver::{GpuDriver, find_gpu};
use super::gpu::GpuDevice;
use super::stream::CudaStream;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trtserver_base::error::Result;

/// The streams of an instance; none for a CPU instance.
#[derive(Clone, Default)]
pub struct InstanceStreams {
    gpu: Option<Arc<GpuStreams>>,
}

/// The streams of a GPU instance. They live as long as the instance, and the memory that was
/// allocated for them.
pub struct GpuStreams {
    pub device: &'static GpuDevice,
    pub compute: Arc<CudaStream>,
    /// Host to device.
    pub copy_in: Arc<CudaStream>,
    /// Device to host.
    pub copy_out: Arc<CudaStream>,
    /// Priority of all three streams; lower values take precedence.
    pub priority: i32,
    completions: CompletionThread,
    /// Declared last: the streams are destroyed before.
    _open: OpenStreamCount,
}

/// Counts the streams of an instance until they are destroyed.
struct OpenStreamCount(&'static GpuDevice);

impl OpenStreamCount {
    fn new(device: &'static GpuDevice) -> Self {
        device.open_streams.fetch_add(1, Ordering::AcqRel);
        Self(device)
    }
}

impl Drop for OpenStreamCount {
    fn drop(&mut self) {
        self.0.open_streams.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Instances whose streams are not destroyed yet, which may be after the instance is closed:
/// callbacks behind their last work hold them. The process must not end meanwhile, since the driver
/// does not expect calls then.
pub fn open_streams() -> usize {
    let devices = GpuDriver::found().map(GpuDriver::devices).unwrap_or_default();
    devices.iter().map(|device| device.open_streams.load(Ordering::Acquire)).sum()
}

impl InstanceStreams {
    /// Creates the streams of an instance and makes the device current on this thread.
    ///
    /// # Errors
    /// The instance is on a GPU, and the driver or the device is missing or lost.
    pub fn for_instance(gpu: bool, ordinal: i32, priority: StreamPriority) -> Result<Self> {
        if !gpu {
            return Ok(Self::default());
        }
        let streams = GpuStreams::new(find_gpu(ordinal)?, priority)?;
        streams.device.context().bind_to_thread()?;
        Ok(Self { gpu: Some(Arc::new(streams)) })
    }

    pub fn gpu(&self) -> Option<&Arc<GpuStreams>> {
        self.gpu.as_ref()
    }

    /// Priority of the streams; `None` without a GPU.
    pub fn priority(&self) -> Option<i32> {
        self.gpu.as_ref().map(|gpu| gpu.priority)
    }

    /// GpuDriver handles for the backend: context, compute, copy in, copy out; null without a GPU.
    pub fn handles(&self) -> [*mut u8; 4] {
        match &self.gpu {
            None => [null_mut(); 4],
            Some(gpu) => [
                // Created with the streams.
                gpu.device.context().handle().map_or(null_mut(), |context| context.cast()),
                gpu.compute.handle().cast(),
                gpu.copy_in.handle().cast(),
                gpu.copy_out.handle().cast(),
            ],
        }
    }
}

impl GpuStreams {
    /// # Errors
    /// The device is lost or out of memory, or the system starts no further thread.
    pub fn new(device: &'static GpuDevice, priority: StreamPriority) -> Result<Self> {
        let context = device.context();
        let entered = context.enter()?;
        // Both are 0 if the device does not support priorities.
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: a context is current and the pointers are valid.
        context.check(unsafe { context.api.stream_priority_range(&mut least, &mut greatest) })?;
        let priority = match priority {
            StreamPriority::Default => 0,
            StreamPriority::Least => least,
            StreamPriority::Greatest => greatest,
        };
        let stream = || CudaStream::new(context, priority).map(Arc::new);
        let streams = Self {
            device,
            compute: stream()?,
            copy_in: stream()?,
            copy_out: stream()?,
            priority,
            completions: CompletionThread::start(context)?,
            _open: OpenStreamCount::new(device),
        };
        drop(entered);
        Ok(streams)
    }

    /// Calls `callback` on the completion thread once all work that is queued on `stream` now is
    /// complete; in the order of these calls. With an error if the device is lost, or has no event
    /// for it; then on this thread, and perhaps before earlier callbacks, but not before the work
    /// is complete: what the callback frees may be reused at once.
    pub fn when_done(&self, stream: &CudaStream, callback: Callback) {
        match self.device.events().record(stream) {
            Ok(event) => self.completions.after(event, callback),
            Err(e) => {
                let _ = stream.settle();
                callback(Err(e));
            }
        }
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
