//! Downloads perf_analyzer, the load generator of Triton's clients, for the wire tests and
//! `cargo xtask bench`: two files of two pinned wheels, in `target/perf_analyzer`. It is linked
//! with libb64, which few systems have: ours is compiled there.

use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::python::{self, Wheel};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIST: &str = "xtask/perf-analyzer.txt";

pub fn folder(paths: &Paths) -> PathBuf {
    paths.target.join("perf_analyzer")
}

/// Without perf_analyzer the benchmarks leave out its rows.
pub fn fetch(paths: &Paths) {
    if let Err(e) = install(paths) {
        say(format!("perf_analyzer: download failed, its rows are left out: {e}"));
    }
}

/// Does nothing where perf_analyzer has no package.
pub fn install(paths: &Paths) -> Result<()> {
    if cfg!(not(target_arch = "x86_64")) {
        say("perf_analyzer: no package for this architecture; what needs it is left out");
        return Ok(());
    }
    let (folder, list) = (folder(paths), paths.root.join(LIST));
    let (program, stamp) = (folder.join("perf_analyzer"), folder.join("made-from.txt"));
    let expected = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    libb64(paths, &folder.join("libb64.so.0d"))?;
    if program.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == expected) {
        return Ok(());
    }
    say(
        "perf_analyzer: downloading it and the CUDA runtime library that it is linked with (16 MB)",
    );
    python::unpack_wheel(
        paths,
        &Wheel {
            requirements: &list,
            tags: &["--platform=manylinux2014_x86_64", "--platform=manylinux1_x86_64"],
            members: "name.endswith('/bin/perf_analyzer') or '/libcudart.so.' in name",
            directories: false,
            scratch: &paths.target.join("perf-analyzer-wheels"),
            into: &folder,
            large: false,
        },
    )?;
    let wrap = |e| format!("{}: {e}", program.display());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(wrap)?;
    fs::write(&stamp, expected).map_err(|e| format!("{}: {e}", stamp.display()))
}

fn libb64(paths: &Paths, library: &Path) -> Result<()> {
    if library.exists() {
        return Ok(());
    }
    let folder = library.parent().unwrap_or(library);
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-O2", "-shared", "-fPIC", "-o"]).arg(library);
    command.arg(paths.root.join("tests/fakes/libb64.c"));
    run(&mut command, "a C compiler is needed (CC names one)")
}
