//! A fake CUDA driver for tests: `tests/fakes/cuda.c`, compiled once, with state of its own for
//! each test.

use super::{DeviceSettings, DriverAbsence, GpuDevice, GpuDriver, GpuStreams, StreamPriority};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A copy of the fake library. Each copy is a library of its own to the dynamic linker.
pub struct FakeCuda {
    library: libloading::Library,
    folder: TempDir,
}

impl FakeCuda {
    /// Settings as the first comment of `tests/fakes/cuda.c` lists them.
    pub fn new(settings: &[(&str, &str)]) -> Self {
        Self::compiled(&[], settings)
    }

    /// A driver without memory pools.
    pub fn without_pools(settings: &[(&str, &str)]) -> Self {
        Self::compiled(&["-DFAKE_CUDA_WITHOUT_POOLS"], settings)
    }

    fn compiled(options: &[&str], settings: &[(&str, &str)]) -> Self {
        static WITH: OnceLock<Vec<u8>> = OnceLock::new();
        static WITHOUT: OnceLock<Vec<u8>> = OnceLock::new();
        let compiled = if options.is_empty() { &WITH } else { &WITHOUT };
        let bytes = compiled.get_or_init(|| compile(options));
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder);
        std::fs::write(&path, bytes).unwrap();
        // SAFETY: its initialisers do nothing.
        let library = unsafe { libloading::Library::new(path) }.unwrap();
        let fake = Self { library, folder };
        // The variable of the environment is not for the tests.
        fake.set("VISIBLE", "0,1,2,3,4,5,6,7");
        for (name, value) in settings {
            fake.set(name, value);
        }
        fake
    }

    pub fn library(&self) -> PathBuf {
        path(&self.folder)
    }

    pub fn set(&self, name: &str, value: &str) {
        let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
        // SAFETY: the function of the fake has this type.
        unsafe {
            let set = self
                .library
                .get::<unsafe extern "C" fn(*const c_char, *const c_char)>(b"fake_cuda_set")
                .unwrap();
            set(name.as_ptr(), value.as_ptr());
        }
    }

    /// What leaked and was misused, by name.
    pub fn report(&self) -> BTreeMap<String, u64> {
        let mut text = [0u8; 1024];
        // SAFETY: the function of the fake has this type.
        unsafe {
            let report = self
                .library
                .get::<unsafe extern "C" fn(*mut u8, usize)>(b"fake_cuda_report")
                .unwrap();
            report(text.as_mut_ptr(), text.len());
        }
        let text = String::from_utf8_lossy(&text);
        let lines = text.trim_end_matches('\0').lines().map(|line| line.split_once(' ').unwrap());
        lines.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    }

    /// How often the server called a function.
    pub fn count(&self, function: &str) -> u64 {
        let name = CString::new(function).unwrap();
        // SAFETY: the function of the fake has this type.
        unsafe {
            let count = self
                .library
                .get::<unsafe extern "C" fn(*const c_char) -> u64>(b"fake_cuda_count")
                .unwrap();
            count(name.as_ptr())
        }
    }

    /// The handle by which other processes open the memory.
    pub fn ipc_handle(&self, address: u64) -> [u8; 64] {
        let mut handle = [0; 64];
        // SAFETY: the function of the fake has this type; the caller's thread has no context of it.
        unsafe {
            let get = self
                .library
                .get::<unsafe extern "C" fn(*mut [u8; 64], u64) -> u32>(b"cuIpcGetMemHandle")
                .unwrap();
            assert_eq!(get(&mut handle, address), 0);
        }
        handle
    }

    pub fn open(&self) -> Result<&'static GpuDriver, DriverAbsence> {
        self.open_with(&DeviceSettings::default())
    }

    pub fn open_with(
        &self,
        settings: &DeviceSettings,
    ) -> Result<&'static GpuDriver, DriverAbsence> {
        GpuDriver::open(&self.library(), settings)
    }

    /// The first device.
    pub fn device(&self) -> &'static GpuDevice {
        self.open().unwrap().device(0).unwrap()
    }

    /// Streams of an instance on the first device.
    pub fn streams(&self) -> GpuStreams {
        GpuStreams::new(self.device(), StreamPriority::Default).unwrap()
    }
}

fn path(folder: &TempDir) -> PathBuf {
    folder.path().join("libcuda.so.1")
}

fn compile(options: &[&str]) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fakes/cuda.c");
    let folder = tempfile::tempdir().unwrap();
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-O1", "-shared", "-fPIC", "-pthread"]).args(options);
    let done = command.arg("-o").arg(path(&folder)).arg(source).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(path(&folder)).unwrap()
}
