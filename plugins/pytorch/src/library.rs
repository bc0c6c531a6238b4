//! Torch's library: opened when the first model needs it, and never closed.

use crate::symbols::{SetThreads, TorchTable};
use crate::types::DtypeNumbers;
use std::path::Path;
use trtserver_framework::library_slot::FrameworkLibrary;
use trtserver_framework::search::{Framework, SETTING, load_resolved};

pub const TORCH: Framework = Framework {
    name: "PyTorch",
    backend: crate::BACKEND,
    setting: SETTING,
    variable: "TRTSERVER_TORCH_LIBRARY",
    files: &["libtorch_cpu.so"],
    system: &["libtorch_cpu.so"],
    packages: &["torch/lib"],
    advice: "`pip install torch` (2.9 or newer), which installs torch/lib/libtorch_cpu.so,",
};

/// The open library. Its functions stay valid until the process ends.
pub struct TorchLibrary {
    pub api: TorchTable,
    pub dtypes: DtypeNumbers,
    /// Of the OpenMP library that torch brings, if it uses one.
    pub set_threads: Option<SetThreads>,
    /// For operators: `PyTorch 2.9.1`.
    pub label: String,
    /// Torch's number of the CPU.
    pub cpu: i32,
}

impl FrameworkLibrary for TorchLibrary {
    fn label(&self) -> &str {
        &self.label
    }
}

/// # Errors
/// It is another library, or an old one; the reason follows the path.
pub fn open_library(path: &Path) -> Result<TorchLibrary, String> {
    let library = load_resolved(path).map_err(explain_dependency)?;
    // SAFETY: the names are those of torch's C interface.
    let api = unsafe { TorchTable::load(&library) }.map_err(|absent| absent_functions(&absent))?;
    // SAFETY: the function of OpenMP takes a number. The lookup covers what the library depends on.
    let set_threads = unsafe { library.get::<SetThreads>(b"omp_set_num_threads\0") };
    let set_threads = set_threads.ok().map(|found| *found);
    // The functions point into the library, so it must not be closed.
    std::mem::forget(library);
    // SAFETY: functions without arguments.
    let (version, cpu) = unsafe { ((api.abi_version)(), (api.device_type_cpu)()) };
    let dtypes = DtypeNumbers::read(&api);
    Ok(TorchLibrary { api, dtypes, set_threads, label: version_label(version), cpu })
}

/// `PyTorch 2.9.1`: the highest three bytes are the release.
fn version_label(version: u64) -> String {
    let [major, minor, patch, ..] = version.to_be_bytes();
    format!("PyTorch {major}.{minor}.{patch}")
}

/// Torch for CUDA needs two small libraries of CUDA also on the CPU.
fn explain_dependency(reason: String) -> String {
    if !["libcudart", "libcupti"].iter().any(|name| reason.contains(name)) {
        return reason;
    }
    format!(
        "{reason}; this torch is built for CUDA, whose packages nvidia-cuda-runtime and nvidia-cuda-cupti it needs \
         (`pip install torch` installs them beside it); torch's CPU build needs neither"
    )
}

fn absent_functions(absent: &[&str]) -> String {
    format!(
        "it lacks functions that torch has since 2.9, so it is an older torch, or not torch at all (whose C functions \
         begin with aoti_torch_): {}",
        absent.join(", ")
    )
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
