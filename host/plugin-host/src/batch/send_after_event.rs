//! Responses that leave when the device has written their outputs.

use super::gpu::GpuInstance;
use super::outputs::ResponseBuilder;
use super::timing::note_times;
use std::sync::Arc;
use trtserver_base::error::Error;
use trtserver_device::CudaEvent;

/// Sends a response from the completion thread of the instance: once `after` is reached, or without
/// it the work on the compute stream, and its outputs are copied, unless they stay there. After the
/// responses that were sent so before.
pub fn send_after_event(
    gpu: &Arc<GpuInstance>,
    after: Option<&CudaEvent>,
    mut response: ResponseBuilder,
    last: bool,
    error: Option<Error>,
) {
    if let Some(execution) = response.responder().counted_execution() {
        note_times(&execution);
    }
    let outputs = response.take_device_outputs();
    gpu.download(after, outputs, move |written| {
        let error = match written {
            Ok(written) => {
                response.put_written(written);
                error
            }
            Err(e) => Some(e),
        };
        // Fails only if the request was ended meanwhile.
        let _ = response.send(last, error);
    });
}
