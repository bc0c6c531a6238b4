//! `cargo xtask runtimes --tensorflow`: TensorFlow's C library in two releases, from PyPI into the
//! user's cache.
//!
//!     <cache>/trtserver/tensorflow/<version>/    one copy for all checkouts, up to 850 MB a release
//!     target/dist/lib/libtensorflow_*.so.2       links to the newest release, where the plugin looks
//!     target/dist/lib/tensorflow-<version>/      links to each release, for servers with both

use super::release::{Release, link_all};
use crate::command::Result;
use crate::paths::{self, Paths};

const MEMBERS: &str = "name.startswith('tensorflow/libtensorflow_') and name.endswith('.so.2')";

/// Newest first.
const RELEASES: [Release; 2] = [
    Release {
        framework: "TensorFlow",
        version: "2.21.0",
        requirements: "tensorflow-2.21.0.txt",
        platforms: &["--platform=manylinux_2_27_x86_64"],
        megabytes: 274,
        members: MEMBERS,
        directories: false,
        libraries: &[
            ("libtensorflow_cc.so.2", 788_086_608),
            ("libtensorflow_framework.so.2", 65_222_328),
        ],
    },
    Release {
        framework: "TensorFlow",
        version: "2.12.0",
        requirements: "tensorflow-2.12.0.txt",
        platforms: &["--platform=manylinux_2_17_x86_64"],
        megabytes: 232,
        members: MEMBERS,
        directories: false,
        libraries: &[
            ("libtensorflow_cc.so.2", 532_058_280),
            ("libtensorflow_framework.so.2", 45_495_672),
        ],
    },
];

/// Whether the plugin finds a library in `target/dist/lib`.
pub fn is_installed(paths: &Paths) -> bool {
    RELEASES[0].libraries.iter().all(|(name, _)| paths.lib().join(name).is_file())
}

/// Downloads the releases that the cache lacks, and links all of them into `target/dist/lib`.
pub fn fetch(paths: &Paths) -> Result<()> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" {
        return Err(format!(
            "no pinned package of TensorFlow for {arch}: copy libtensorflow_cc.so.2 and libtensorflow_framework.so.2 \
             into {}, or run the tests with `--without tensorflow`",
            paths.short(&paths.lib())
        ));
    }
    let cache = paths::user_cache()?.join("tensorflow");
    let mut links = Vec::new();
    for release in &RELEASES {
        let directory = release.install(paths, &cache)?;
        links.push((directory, format!("tensorflow-{}", release.version).into()));
    }
    let newest = links[0].0.clone();
    links.extend(RELEASES[0].libraries.iter().map(|(name, _)| (newest.join(name), name.into())));
    link_all(paths, &links)
}
