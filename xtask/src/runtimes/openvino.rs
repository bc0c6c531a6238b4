//! `cargo xtask runtimes --openvino`: OpenVINO with its device for CPUs and its readers of files, from
//! PyPI into the user's cache.
//!
//!     <cache>/trtserver/openvino/<version>/    one copy for all checkouts, 103 MB
//!     target/dist/lib/libopenvino_c.so         a link, where the plugin looks

use super::release::{Release, link_all};
use crate::command::Result;
use crate::paths::{self, Paths};

const OPENVINO: Release = Release {
    framework: "OpenVINO",
    version: "2026.4.1",
    requirements: "openvino-2026.4.1.txt",
    platforms: &["--platform=manylinux_2_28_x86_64"],
    megabytes: 59,
    // Neither devices that need a driver, nor readers of files that no backend is given.
    members: "name.startswith('openvino/libs/lib') and not \
              any(part in name for part in ('_gpu_', '_npu_', '_gguf_', '_jax_', '_pytorch_', '_proxy'))",
    directories: false,
    libraries: &[
        ("libopenvino_c.so.2641", 377_505),
        ("libopenvino.so.2641", 20_526_937),
        ("libopenvino_auto_plugin.so", 685_129),
        ("libopenvino_hetero_plugin.so", 559_265),
        ("libopenvino_intel_cpu_plugin.so", 63_691_929),
        ("libopenvino_ir_frontend.so.2641", 640_313),
        ("libopenvino_onnx_frontend.so.2641", 6_827_321),
        ("libopenvino_paddle_frontend.so.2641", 1_905_353),
        ("libopenvino_tensorflow_frontend.so.2641", 5_227_801),
        ("libopenvino_tensorflow_lite_frontend.so.2641", 1_338_601),
        ("libtbb.so.12", 369_313),
    ],
};

/// Downloads the library unless the cache has it, and links it into `target/dist/lib`.
pub fn fetch(paths: &Paths) -> Result<()> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" {
        return Err(format!(
            "no pinned package of OpenVINO for {arch}: copy libopenvino_c.so and the libraries of its package into {}, \
             or run the tests with `--without openvino`",
            paths.short(&paths.lib())
        ));
    }
    let installed = OPENVINO.install(paths, &paths::user_cache()?.join("openvino"))?;
    link_all(paths, &[(installed.join("libopenvino_c.so.2641"), "libopenvino_c.so".into())])
}
