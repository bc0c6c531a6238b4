//! What an error of a run on a GPU says about the GPU.

use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_api::author::Device;

#[derive(Debug, PartialEq, Eq)]
enum Cause {
    /// The arena or the device has too little memory.
    Memory,
    /// A call of CUDA or of a library on it has failed.
    Cuda,
    Other,
}

/// By the text: the library has no codes for these.
fn fault_cause(text: &str) -> Cause {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if has(&[
        "Failed to allocate memory",
        "Available memory of",
        "out of memory",
        "CUDA failure 2:",
    ]) {
        Cause::Memory
    } else if has(&["CUDA failure", "CUDA error", "CUBLAS failure", "CUDNN failure"]) {
        Cause::Cuda
    } else {
        Cause::Other
    }
}

/// Adds what the host finds out about the device.
pub fn explain_fault(fault: PluginFault, device: &Device) -> PluginFault {
    match fault_cause(&fault.text) {
        Cause::Other => fault,
        Cause::Memory => PluginFault {
            code: code::EXHAUSTED,
            text: format!(
                "GPU {} has too little memory for a run (gpu_mem_limit limits the arena of an instance): {}",
                device.id(),
                fault.text
            ),
        },
        Cause::Cuda => match device.fault(&fault.text) {
            Ok(true) => PluginFault { code: code::DEVICE_LOST, ..fault },
            Ok(false) | Err(_) => fault,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_library_tell_the_cause() {
        for (text, expected) in [
            (
                "bfc_arena.cc:359 AllocateRawInternal Available memory of 1024 is smaller than requested bytes of 4096",
                Cause::Memory,
            ),
            ("Failed to allocate memory for requested buffer of size 4096", Cause::Memory),
            ("CUDA failure 2: out of memory ; GPU=0", Cause::Memory),
            ("CUDA failure 700: an illegal memory access was encountered ; GPU=0", Cause::Cuda),
            ("CUBLAS failure 14: CUBLAS_STATUS_INTERNAL_ERROR ; GPU=0", Cause::Cuda),
            ("Non-zero status code returned while running Reshape node", Cause::Other),
        ] {
            assert_eq!(fault_cause(text), expected, "{text}");
        }
    }
}
