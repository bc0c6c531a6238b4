//! `cargo xtask runtimes`: puts the frameworks' libraries under `target/dist/lib/`.
//!
//! The host needs none of them. ONNX Runtime is fetched because the demo and the tests use it;
//! an operator may as well put a library of their own there.

use crate::command::{Result, say};
use crate::paths::Paths;
use crate::python;
use std::fs;
use std::os::unix::fs::symlink;

const VERSION: &str = "1.31.1";

pub fn fetch(paths: &Paths) -> Result<()> {
    let lib = paths.lib();
    let library = lib.join("libonnxruntime.so.1");
    let stamp = lib.join("onnxruntime.version");
    let arch = std::env::consts::ARCH;
    let version = format!("{VERSION} {arch}\n");
    if library.exists() && fs::read_to_string(&stamp).is_ok_and(|have| have == version) {
        say(format!("runtimes: ONNX Runtime {VERSION} is already in {}", paths.short(&lib)));
        return Ok(());
    }
    if !matches!(arch, "x86_64" | "aarch64") {
        return Err(format!(
            "no ONNX Runtime {VERSION} is known for {arch}: put a libonnxruntime.so.1 into {} by hand",
            paths.short(&lib)
        ));
    }

    say(format!("runtimes: fetching ONNX Runtime {VERSION} for {arch} (about 20 MB)"));
    let platform = format!("--platform=manylinux_2_28_{arch}");
    python::unpack_wheel(
        &paths.root.join("xtask/runtimes.txt"),
        // Any one Python's wheel will do: only the C library is taken out of it.
        &[&platform, "--python-version=312", "--implementation=cp", "--abi=cp312"],
        &format!("name == 'onnxruntime/capi/libonnxruntime.so.{VERSION}'"),
        &paths.target.join("runtimes-wheel"),
        &lib,
    )?;
    // The file gets its soname, under which the loader and the plugin look for it.
    let wrap = |e| format!("cannot lay out {}: {e}", lib.display());
    fs::rename(lib.join(format!("libonnxruntime.so.{VERSION}")), &library).map_err(wrap)?;
    let plain = lib.join("libonnxruntime.so");
    if plain.symlink_metadata().is_ok() {
        fs::remove_file(&plain).map_err(wrap)?;
    }
    symlink("libonnxruntime.so.1", plain).map_err(wrap)?;
    fs::write(stamp, version).map_err(wrap)?;
    say(format!("runtimes: {}", paths.short(&library)));
    Ok(())
}
