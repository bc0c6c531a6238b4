//! `cargo xtask runtimes --tensorrt`: the lean and dispatch runtimes of TensorRT in two releases,
//! from PyPI into the user's cache.
//!
//!     <cache>/trtserver/tensorrt/<version>/    one copy for all checkouts, 112 MB a release
//!     target/dist/lib/tensorrt-<version>/      links to each release, which the plugin uses only if a setting names it
//!
//! They run version-compatible plans only, on a machine with a GPU. Without one they serve tests:
//! they are loaded, and refuse.

use super::release::{Release, link_all};
use crate::command::Result;
use crate::paths::{self, Paths};

const MEMBERS: &str = "'/libnvinfer_lean.so.' in name or '/libnvinfer_dispatch.so.' in name";

const RELEASES: [Release; 2] = [
    Release {
        framework: "TensorRT",
        version: "11.4.0.106",
        requirements: "tensorrt-11.4.0.106.txt",
        platforms: &["--platform=manylinux_2_28_x86_64"],
        megabytes: 47,
        members: MEMBERS,
        directories: false,
        libraries: &[
            ("libnvinfer_lean.so.11", 110_681_552),
            ("libnvinfer_dispatch.so.11", 964_072),
        ],
    },
    Release {
        framework: "TensorRT",
        version: "10.16.1.11",
        requirements: "tensorrt-10.16.1.11.txt",
        platforms: &["--platform=manylinux_2_28_x86_64"],
        megabytes: 47,
        members: MEMBERS,
        directories: false,
        libraries: &[
            ("libnvinfer_lean.so.10", 111_192_000),
            ("libnvinfer_dispatch.so.10", 981_976),
        ],
    },
];

/// Downloads the releases that the cache lacks, and links them into `target/dist/lib`.
pub fn fetch(paths: &Paths) -> Result<()> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" {
        return Err(format!(
            "no pinned package of TensorRT for {arch}: run the tests with `--without tensorrt`"
        ));
    }
    let cache = paths::user_cache()?.join("tensorrt");
    let mut links = Vec::new();
    for release in &RELEASES {
        let directory = release.install(paths, &cache)?;
        links.push((directory, format!("tensorrt-{}", release.version).into()));
    }
    link_all(paths, &links)
}
