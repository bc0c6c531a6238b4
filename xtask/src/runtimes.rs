//! `cargo xtask runtimes`: downloads framework libraries into `target/dist/lib/`.
//!
//! The host needs none of them. The demo and the tests use ONNX Runtime; with `--openvino`,
//! OpenVINO is fetched as well, with `--tensorflow`, TensorFlow, with `--tensorrt`, the lean runtime
//! of TensorRT, with `--torch`, PyTorch's library for the CPU, with `--trees`, LightGBM and XGBoost,
//! with `--triton`, Triton and its Python backend, with `--gpu`, ONNX Runtime for GPUs. Operators can
//! install their own libraries there.

pub mod onnxruntime_gpu;
pub mod openvino;
mod release;
pub mod tensorflow;
pub mod tensorrt;
pub mod torch;
pub mod trees;
pub mod triton;

use crate::command::{Result, say};
use crate::paths::{self, Paths};
use crate::python::{self, Wheel};
use std::fs;
use std::os::unix::fs::symlink;

const VERSION: &str = "1.31.1";

pub fn fetch(paths: &Paths) -> Result<()> {
    let _lock = paths::lock(&paths.target.join("runtimes.lock"))?;
    let lib = paths.lib();
    let library = lib.join("libonnxruntime.so.1");
    let stamp = lib.join("onnxruntime.version");
    let arch = std::env::consts::ARCH;
    let version = format!("{VERSION} {arch}\n");
    if library.exists() && fs::read_to_string(&stamp).is_ok_and(|have| have == version) {
        say(format!("runtimes: ONNX Runtime {VERSION} is up to date in {}", paths.short(&lib)));
        return Ok(());
    }
    if !matches!(arch, "x86_64" | "aarch64") {
        return Err(format!(
            "no package of ONNX Runtime {VERSION} for {arch}: copy a libonnxruntime.so.1 into {}",
            paths.short(&lib)
        ));
    }

    say(format!("runtimes: downloading ONNX Runtime {VERSION} for {arch} (about 20 MB)"));
    let platform = format!("--platform=manylinux_2_28_{arch}");
    python::unpack_wheel(
        paths,
        &Wheel {
            requirements: &paths.root.join("xtask/runtimes.txt"),
            // The wheel of any Python version: only its C library is used.
            tags: &[&platform, "--python-version=312", "--implementation=cp", "--abi=cp312"],
            members: &format!("name == 'onnxruntime/capi/libonnxruntime.so.{VERSION}'"),
            directories: false,
            scratch: &paths.target.join("runtimes-wheel"),
            into: &lib,
            large: false,
        },
    )?;
    // Renamed to its soname, which the loader and the plugin look for.
    let wrap = |e| format!("cannot install into {}: {e}", lib.display());
    fs::rename(lib.join(format!("libonnxruntime.so.{VERSION}")), &library).map_err(wrap)?;
    let plain = lib.join("libonnxruntime.so");
    if plain.symlink_metadata().is_ok() {
        fs::remove_file(&plain).map_err(wrap)?;
    }
    symlink("libonnxruntime.so.1", plain).map_err(wrap)?;
    fs::write(stamp, version).map_err(wrap)?;
    say(format!("runtimes: installed {}", paths.short(&library)));
    Ok(())
}
