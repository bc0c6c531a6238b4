//! Execution providers of ONNX Runtime that a configuration may request.

use trtserver_framework::config::Accelerator;

/// An execution provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionProvider {
    Cuda,
    TensorRt,
    OpenVino,
}

impl ExecutionProvider {
    /// As the library lists it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDAExecutionProvider",
            Self::TensorRt => "TensorrtExecutionProvider",
            Self::OpenVino => "OpenVINOExecutionProvider",
        }
    }

    /// `None`: an unknown accelerator.
    pub fn from_accelerator(accelerator: &Accelerator) -> Option<Self> {
        match (accelerator.gpu, &*accelerator.name) {
            (true, "cuda") => Some(Self::Cuda),
            (true, "tensorrt") => Some(Self::TensorRt),
            (false, "openvino") => Some(Self::OpenVino),
            _ => None,
        }
    }

    /// How a library that has it is obtained.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Cuda | Self::TensorRt => {
                "`cargo xtask runtimes --gpu` or `pip install onnxruntime-gpu` gets a library that has it"
            }
            Self::OpenVino => "`pip install onnxruntime-openvino` gets a library that has it",
        }
    }
}
