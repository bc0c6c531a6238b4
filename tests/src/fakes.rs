//! Fake GPU libraries, compiled from `tests/fakes`: a CUDA driver and NVML. Test doubles, found through `LD_LIBRARY_PATH`.

use crate::compile::{compile, folder};
use crate::server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder of libraries that a server finds before those of the system.
pub struct Fakes {
    folder: TempDir,
}

impl Fakes {
    /// Driver and NVML.
    pub fn new() -> Self {
        let fakes = Self::without_nvml();
        compile("tests/fakes/nvml.c", &fakes.path("libnvidia-ml.so.1"), &[]);
        fakes
    }

    /// The driver; the file of NVML is no library.
    pub fn without_nvml() -> Self {
        let fakes = Self::unusable();
        compile("tests/fakes/cuda.c", &fakes.path("libcuda.so.1"), &["-pthread".to_owned()]);
        fakes
    }

    /// Neither: both files are no libraries, which also hides those of a machine that has them.
    pub fn unusable() -> Self {
        let fakes = Self { folder: folder() };
        for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
            fs::write(fakes.path(name), "not a library").unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        fakes
    }

    /// A server that uses them.
    pub fn server(&self) -> Server {
        // The report of a driver is appended by each process that has used it.
        Server::new()
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env("FAKE_CUDA_VISIBLE", "0,1,2,3,4,5,6,7")
            .env("FAKE_CUDA_REPORT", self.path("report"))
    }

    /// A file of the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    /// Sum over all processes that have ended of a line of the driver's report, such as `double_frees`.
    pub fn reported(&self, name: &str) -> u64 {
        let text =
            fs::read_to_string(self.path("report")).unwrap_or_else(|e| panic!("no report: {e}"));
        let values =
            text.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        values.sum()
    }
}

impl Default for Fakes {
    fn default() -> Self {
        Self::new()
    }
}
