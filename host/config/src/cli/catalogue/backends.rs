//! Flags of backends, memory and devices.

use super::flag::{ANY_INT, BYTES, FlagKind, FlagSpec, flag_spec};

pub(super) const BACKENDS: &[FlagSpec] = &[
    flag_spec(
        "backend-dir",
        FlagKind::Path("DIR"),
        "",
        "Directory to search for backend plugins before ../backends of the program",
    )
    .also(&["backend-directory"])
    .repeats(),
    flag_spec(
        "backend-config",
        FlagKind::Text("[NAME,]KEY=VALUE"),
        "",
        "Setting of the backend NAME, or of all backends",
    )
    .repeats(),
    flag_spec(
        "tf-allow-soft-placement",
        FlagKind::Bool,
        "",
        "Same as --backend-config=tensorflow,allow-soft-placement=…",
    ),
    flag_spec(
        "tf-gpu-memory-fraction",
        FlagKind::Float,
        "",
        "Same as --backend-config=tensorflow,gpu-memory-fraction=…",
    ),
    flag_spec(
        "tf-add-vgpu",
        FlagKind::Text("GPU;COUNT;MB"),
        "",
        "Split a GPU into virtual GPUs for TensorFlow",
    )
    .repeats()
    .unsupported(
        &[],
        "virtual GPUs for TensorFlow: several instances of a group share a GPU, and --tf-gpu-memory-fraction limits its memory",
    ),
    flag_spec(
        "platform-config-file",
        FlagKind::Path("FILE"),
        "",
        "Settings of TensorFlow by platform, a PlatformConfigMap of TRTIS in protobuf text; \
         --backend-config takes precedence",
    ),
    flag_spec("repoagent-directory", FlagKind::Path("DIR"), "", "Directory of repository agents")
        .no_effect("the server has no repository agents"),
];

pub(super) const DEVICES: &[FlagSpec] = &[
    flag_spec(
        "pinned-memory-pool-byte-size",
        BYTES,
        "268435456",
        "Limit of the pinned memory, in bytes",
    ),
    flag_spec(
        "cuda-memory-pool-byte-size",
        FlagKind::Text("GPU:BYTES"),
        "",
        "Free memory of a GPU that the server keeps for later requests, in bytes; default 67108864",
    )
    .repeats(),
    flag_spec(
        "cuda-virtual-address-size",
        FlagKind::Text("GPU:BYTES"),
        "",
        "Virtual address space for growable state memory",
    )
    .repeats()
    .no_effect("the server has no growable state memory"),
    flag_spec("buffer-manager-thread-count", ANY_INT, "", "Number of threads that copy tensors")
        .no_effect("instance threads copy their own tensors"),
    flag_spec("enable-peer-access", FlagKind::Bool, "", "Enable peer access between GPUs")
        .no_effect("tensors are not copied between GPUs"),
    flag_spec(
        "min-supported-compute-capability",
        FlagKind::Float,
        "0",
        "Ignore GPUs with a lower compute capability",
    ),
    flag_spec(
        "model-load-gpu-limit",
        FlagKind::Text("GPU:FRACTION"),
        "",
        "Refuse to open an instance on a GPU of whose memory more than this share is in use",
    )
    .repeats(),
    flag_spec(
        "host-policy",
        FlagKind::Text("NAME,SETTING=VALUE"),
        "",
        "CPU cores (cpu-cores=0-3,8) or memory node (numa-node=0) of the instances with this policy: \
         host_policy of their group, else cpu, gpu_N or model",
    )
    .repeats(),
    flag_spec(
        "allow-client-shm",
        FlagKind::Bool,
        "false",
        "Allow v2 clients to register shared memory regions and to use them in requests; v1 clients \
         always may",
    ),
];
