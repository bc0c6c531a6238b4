//! Fake GPU libraries, compiled from `tests/fakes`: a CUDA driver, NVML and TensorRT. Test doubles,
//! found through `LD_LIBRARY_PATH`.

use crate::compile::{compile, compiled, folder};
use crate::server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
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

    /// The driver; the file of NVML is not a library.
    pub fn without_nvml() -> Self {
        let fakes = Self::unusable();
        static DRIVER: OnceLock<Vec<u8>> = OnceLock::new();
        let driver = || compiled("tests/fakes/cuda.c", &["-pthread".to_owned()]);
        fakes.write("libcuda.so.1", DRIVER.get_or_init(driver));
        fakes
    }

    /// The driver, and TensorRT of these major versions: 8, 10, 11.
    pub fn with_tensorrt(majors: &[u32]) -> Self {
        static LIBRARIES: [OnceLock<Vec<u8>>; 3] = [const { OnceLock::new() }; 3];
        let fakes = Self::without_nvml();
        for major in majors {
            let index = [8, 10, 11].iter().position(|m| m == major);
            let index = index.unwrap_or_else(|| panic!("no fake TensorRT {major}"));
            let library = LIBRARIES[index].get_or_init(|| nvinfer(*major, &[]));
            fakes.write(&format!("libnvinfer.so.{major}"), library);
        }
        fakes
    }

    /// Adds a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    }

    /// Neither: both files are not libraries, which also hides those of a machine that has them.
    pub fn unusable() -> Self {
        let fakes = Self { folder: folder() };
        for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
            fakes.write(name, "not a library");
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
            .env("FAKE_NVINFER_REPORT", self.path("report"))
    }

    /// A file of the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    /// Sum over all processes that have ended of a line of the fakes' report, such as
    /// `double_frees`.
    pub fn reported(&self, name: &str) -> u64 {
        let text =
            fs::read_to_string(self.path("report")).unwrap_or_else(|e| panic!("no report: {e}"));
        let values =
            text.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        values.sum()
    }
}

/// The fake TensorRT of a major version, with further options of the compiler.
pub fn nvinfer(major: u32, options: &[&str]) -> Vec<u8> {
    let mut all = vec![
        format!("-DMAJOR={major}"),
        format!("-Wl,-soname,libnvinfer.so.{major}"),
        "-fvisibility=hidden".to_owned(),
        "-pthread".to_owned(),
    ];
    all.extend(options.iter().map(|option| (*option).to_owned()));
    compiled("tests/fakes/nvinfer/nvinfer.cpp", &all)
}

impl Default for Fakes {
    fn default() -> Self {
        Self::new()
    }
}
