//! The checks, in the order in which they run. A check that breaks a GPU on purpose comes last.

mod discovery; // GPUs, by the server, the driver and nvidia-smi
mod faults; // a kernel that faults
mod kernels; // sums by a kernel, alone and in batches
mod latency; // time beyond the bare driver calls
mod memory; // device memory over many requests
mod onnx; // ONNX models on CUDA
mod onnx_buckets; // prepared batch sizes of ONNX models
mod onnx_copies; // copies of the next batch beside the run of an ONNX model
mod overlap; // copies beside kernels
mod pinned_inputs; // bodies and shared memory in pinned memory
mod shared_memory; // regions of this process
mod tensorrt; // plans, with the real library

use crate::Options;
use crate::cuda::Driver;
use crate::report::CheckResult;

pub struct Check {
    pub name: &'static str,
    pub what: &'static str,
    pub run: fn(&Driver, &Options) -> CheckResult,
}

pub const ALL: &[Check] = &[
    Check {
        name: "discovery",
        what: "the server finds the GPUs that the driver and nvidia-smi report",
        run: discovery::run,
    },
    Check {
        name: "kernels",
        what: "sums computed on each GPU are right, alone and in batches",
        run: kernels::run,
    },
    Check {
        name: "cuda-shared-memory",
        what: "tensors in device memory of another process are read and written in place",
        run: shared_memory::run,
    },
    Check {
        name: "latency",
        what: "a request of 4 KiB takes at most 40 us more than the bare driver calls",
        run: latency::run,
    },
    Check {
        name: "overlap",
        what: "copies of one batch run beside the kernel of another",
        run: overlap::run,
    },
    Check {
        name: "pinned-inputs",
        what: "bodies and system shared memory are copied from pinned memory, and no slower than others",
        run: pinned_inputs::run,
    },
    Check { name: "memory", what: "device memory is flat over 100,000 requests", run: memory::run },
    Check {
        name: "tensorrt",
        what: "plans built by trtexec give right results, a damaged one is refused (docs/tensorrt.md)",
        run: tensorrt::run,
    },
    Check {
        name: "onnx-speed",
        what: "ResNet-50 by ONNX Runtime: 95 % of a bare loop's throughput, at most 60 us more for one image",
        run: onnx::speed,
    },
    Check {
        name: "onnx-buckets",
        what: "prepared batch sizes: one image within 200 us of a bare run, 90 % of the throughput of the largest size",
        run: onnx_buckets::run,
    },
    Check {
        name: "onnx-copies",
        what: "eager_batching: the next batch is copied while one runs, and nothing is slower",
        run: onnx_copies::run,
    },
    Check {
        name: "onnx-priorities",
        what: "a model of PRIORITY_MAX beside one of PRIORITY_MIN: 99th percentile within 1.3 times",
        run: onnx::priorities,
    },
    Check {
        name: "onnx-memory",
        what: "device memory of ONNX models is flat over 100,000 requests, or 40 s of them",
        run: onnx::memory,
    },
    Check {
        name: "faults",
        what: "a kernel that faults fails its requests only; an isolated model serves again",
        run: faults::run,
    },
];
