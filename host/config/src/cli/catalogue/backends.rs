//! Flags of backends, memory and devices.

use super::flag::{ANY_INT, BYTES, Flag, Kind, flag};

pub(super) const BACKENDS: &[Flag] = &[
    flag(
        "backend-dir",
        Kind::Path("DIR"),
        "",
        "Directory to search for backend plugins; by default ../backends of the program",
    )
    .also(&["backend-directory"])
    .repeats(),
    flag(
        "backend-config",
        Kind::Text("[NAME,]KEY=VALUE"),
        "",
        "Setting of the backend NAME, or of all backends",
    )
    .repeats(),
    flag(
        "tf-allow-soft-placement",
        Kind::Bool,
        "",
        "Same as --backend-config=tensorflow,allow-soft-placement=…",
    ),
    flag(
        "tf-gpu-memory-fraction",
        Kind::Float,
        "",
        "Same as --backend-config=tensorflow,gpu-memory-fraction=…",
    ),
    flag(
        "tf-add-vgpu",
        Kind::Text("GPU;COUNT;MB"),
        "",
        "Split a GPU into virtual GPUs for TensorFlow",
    )
    .repeats()
    .unsupported(
        &[],
        "virtual GPUs for TensorFlow: several instances of a group share a GPU, and --tf-gpu-memory-fraction limits its memory",
    ),
    flag(
        "platform-config-file",
        Kind::Path("FILE"),
        "",
        "Settings of TensorFlow by platform, a PlatformConfigMap of TRTIS in protobuf text; \
         --backend-config takes precedence",
    ),
    flag("repoagent-directory", Kind::Path("DIR"), "", "Directory of repository agents")
        .no_effect("the server has no repository agents"),
];

pub(super) const DEVICES: &[Flag] = &[
    flag(
        "pinned-memory-pool-byte-size",
        BYTES,
        "268435456",
        "Limit of the pinned memory, in bytes",
    ),
    flag(
        "cuda-memory-pool-byte-size",
        Kind::Text("GPU:BYTES"),
        "",
        "Free memory of a GPU that the server keeps for later requests, in bytes; default 67108864",
    )
    .repeats(),
    flag(
        "cuda-virtual-address-size",
        Kind::Text("GPU:BYTES"),
        "",
        "Virtual address space for growable state memory",
    )
    .repeats()
    .no_effect("the server has no growable state memory"),
    flag("buffer-manager-thread-count", ANY_INT, "", "Number of threads that copy tensors")
        .no_effect("instance threads copy their own tensors"),
    flag("enable-peer-access", Kind::Bool, "", "Enable peer access between GPUs")
        .no_effect("tensors are not copied between GPUs"),
    flag(
        "min-supported-compute-capability",
        Kind::Float,
        "0",
        "Ignore GPUs with a lower compute capability",
    ),
    flag(
        "model-load-gpu-limit",
        Kind::Text("GPU:FRACTION"),
        "",
        "Refuse model loads when a GPU's memory use is above the limit",
    )
    .repeats()
    .unsupported(
        &[],
        "a limit of GPU memory for loads: a load is refused only when the GPU has too little memory left",
    ),
    flag(
        "host-policy",
        Kind::Text("NAME,KEY=VALUE"),
        "",
        "CPU cores and memory nodes of instances",
    )
    .repeats()
    .unsupported(
        &[],
        "host policies: instances run on all CPU cores of the process, which taskset or numactl can restrict",
    ),
    flag(
        "allow-client-shm",
        Kind::Bool,
        "false",
        "Allow v2 clients to register shared memory regions and to use them in requests; v1 clients \
         always may",
    ),
];
