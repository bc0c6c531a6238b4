//! `cargo xtask runtimes --trees`: the C libraries of LightGBM and XGBoost, from PyPI into the
//! user's cache.
//!
//!     <cache>/trtserver/lightgbm/<version>/    one copy for all checkouts, 9 MB
//!     <cache>/trtserver/xgboost/<version>/     the same, 17 MB, with the directories of its wheel: it finds libgomp by them
//!     target/dist/lib/lib_lightgbm.so          links, where the plugin looks
//!     target/dist/lib/libxgboost.so

use super::release::{Release, link_all};
use crate::command::Result;
use crate::paths::{self, Paths};

const LIGHTGBM: Release = Release {
    framework: "LightGBM",
    version: "4.7.0",
    requirements: "lightgbm-4.7.0.txt",
    platforms: &["--platform=manylinux_2_28_x86_64"],
    megabytes: 4,
    members: "name == 'lightgbm/lib/lib_lightgbm.so'",
    directories: false,
    libraries: &[("lib_lightgbm.so", 9_247_120)],
};

const XGBOOST: Release = Release {
    framework: "XGBoost",
    version: "3.2.0",
    requirements: "xgboost-3.2.0.txt",
    platforms: &["--platform=manylinux_2_28_x86_64"],
    megabytes: 6,
    members: "name == 'xgboost/lib/libxgboost.so' or name.startswith('xgboost_cpu.libs/libgomp-')",
    directories: true,
    libraries: &[
        ("xgboost/lib/libxgboost.so", 17_135_761),
        ("xgboost_cpu.libs/libgomp-e985bcbb.so.1.0.0", 253_289),
    ],
};

/// Downloads the libraries that the cache lacks, and links them into `target/dist/lib`.
pub fn fetch(paths: &Paths) -> Result<()> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" {
        return Err(format!(
            "no pinned packages of LightGBM and XGBoost for {arch}: copy lib_lightgbm.so and libxgboost.so into {}, or \
             run the tests with `--without trees`",
            paths.short(&paths.lib())
        ));
    }
    let cache = paths::user_cache()?;
    let lightgbm = LIGHTGBM.install(paths, &cache.join("lightgbm"))?;
    let xgboost = XGBOOST.install(paths, &cache.join("xgboost"))?;
    let links = [
        (lightgbm.join("lib_lightgbm.so"), "lib_lightgbm.so".into()),
        (xgboost.join("xgboost/lib/libxgboost.so"), "libxgboost.so".into()),
    ];
    link_all(paths, &links)
}
