//! `cargo xtask runtimes --gpu`: ONNX Runtime with its CUDA and TensorRT providers, and CUDA's
//! libraries for them, from PyPI into the user's cache.
//!
//!     <cache>/trtserver/onnxruntime-gpu/<version>/    one copy for all checkouts, 2.6 GB
//!     target/dist/lib/onnxruntime-gpu/                a link to it, used only by `--backend-config=onnxruntime,library=…`
//!
//! The plugin opens CUDA's libraries that lie beside ONNX Runtime, so that a machine with a GPU
//! needs its driver only: one for CUDA 13. The TensorRT provider needs libraries of TensorRT
//! besides, which PyPI does not have.

use super::release::{Release, link_all};
use crate::command::{Result, say};
use crate::paths::{self, Paths};

/// Name of the directory in the cache, and of the link to the release.
const NAME: &str = "onnxruntime-gpu";

const RELEASE: Release = Release {
    framework: "ONNX Runtime for GPUs",
    version: "1.31.1",
    requirements: "onnxruntime-gpu-1.31.1.txt",
    platforms: &[
        "--platform=manylinux_2_28_x86_64",
        "--platform=manylinux_2_27_x86_64",
        "--platform=manylinux2014_x86_64",
    ],
    megabytes: 1520,
    members: "'.so' in name and name.startswith(('onnxruntime/capi/lib', 'nvidia/'))",
    directories: false,
    libraries: &[
        ("libonnxruntime.so.1.31.1", 29_421_832),
        ("libonnxruntime_providers_cuda.so", 284_014_752),
        ("libonnxruntime_providers_shared.so", 14_632),
        ("libonnxruntime_providers_tensorrt.so", 994_968),
    ],
};

/// Downloads the libraries unless the cache has them, and links them into `target/dist/lib`.
pub fn fetch(paths: &Paths) -> Result<()> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" {
        return Err(format!("no pinned package of ONNX Runtime for GPUs for {arch}"));
    }
    let cache = paths::user_cache()?.join(NAME);
    let directory = RELEASE.install(paths, &cache)?;
    link_all(paths, &[(directory, NAME.into())])?;
    let linked = paths.lib().join(NAME);
    say(format!("runtimes: use it with --backend-config=onnxruntime,library={}", linked.display()));
    Ok(())
}
