//! `cargo xtask runtimes --torch`: torch's library for models on the CPU, from PyPI into the user's
//! cache.
//!
//!     <cache>/trtserver/torch/<version>/    one copy for all checkouts, 459 MB, with the directories of its wheels
//!     target/dist/lib/libtorch_cpu.so       a link, where the plugin looks
//!
//! PyPI's torch for x86-64 is built for CUDA, so that its library for the CPU needs two small
//! libraries of CUDA, which it finds by the directories. No test needs it: the suite has a fake
//! torch.

use super::release::{Release, link_all};
use crate::command::Result;
use crate::paths::{self, Paths};

const TORCH: Release = Release {
    framework: "PyTorch",
    version: "2.15.0",
    requirements: "torch-2.15.0.txt",
    platforms: &[
        "--platform=manylinux_2_28_x86_64",
        "--platform=manylinux_2_25_x86_64",
        "--platform=manylinux2014_x86_64",
    ],
    megabytes: 554,
    members: "name.startswith(('torch/lib/libtorch_cpu.so', 'torch/lib/libc10.so', 'torch/lib/libgomp.so')) or \
              name.endswith(('/libcudart.so.13', '/libcupti.so.13'))",
    directories: true,
    libraries: &[
        ("torch/lib/libtorch_cpu.so", 448_373_553),
        ("torch/lib/libc10.so", 1_671_217),
        ("torch/lib/libgomp.so.1", 2_115_577),
        ("nvidia/cu13/lib/libcudart.so.13", 773_920),
        ("nvidia/cu13/lib/libcupti.so.13", 5_912_448),
    ],
};

/// Downloads the library unless the cache has it, and links it into `target/dist/lib`.
pub fn fetch(paths: &Paths) -> Result<()> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" {
        return Err(format!(
            "no pinned package of PyTorch for {arch}: `pip install torch` (2.9 or newer) and name its torch/lib with \
             TRTSERVER_TORCH_LIBRARY, or link torch/lib/libtorch_cpu.so into {}",
            paths.short(&paths.lib())
        ));
    }
    let installed = TORCH.install(paths, &paths::user_cache()?.join("torch"))?;
    link_all(paths, &[(installed.join("torch/lib/libtorch_cpu.so"), "libtorch_cpu.so".into())])
}
