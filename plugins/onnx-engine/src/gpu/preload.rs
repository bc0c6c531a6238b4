//! Opens the libraries of CUDA that lie beside ONNX Runtime, so that its providers find them
//! without `LD_LIBRARY_PATH`: the dynamic loader identifies a library that is open by its soname.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::{Path, PathBuf};
use std::sync::Once;
use trtserver_framework::log;
use trtserver_plugin_api::abi::types::level;

/// Beginnings of file names, in an order in which each finds what it needs.
const LIBRARIES: [&str; 11] = [
    "libcudart.so",
    "libnvrtc.so",
    "libnvJitLink.so",
    "libcublasLt.so",
    "libcublas.so",
    "libcurand.so",
    "libcufft.so",
    "libcudnn.so",
    "libnvinfer.so",
    "libnvinfer_plugin.so",
    "libnvonnxparser.so",
];

/// Once for the process. `library` is the path of ONNX Runtime, or a name that the loader resolved.
pub fn preload_cuda(library: &str) {
    static ONCE: Once = Once::new();
    let directory = Path::new(library).parent().filter(|parent| parent.is_absolute());
    let Some(directory) = directory else { return };
    ONCE.call_once(|| {
        for file in beside(directory) {
            // SAFETY: opening runs the library's initialisers; the operator has put it there.
            match unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) } {
                Ok(opened) => std::mem::forget(opened),
                Err(e) => {
                    let reason = std::error::Error::source(&e)
                        .map_or_else(|| e.to_string(), ToString::to_string);
                    log::write_line(
                        level::WARNING,
                        &format!("{} cannot be opened: {reason}", file.display()),
                    );
                }
            }
        }
    });
}

fn beside(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let of = |library: &'static str| names.iter().filter(move |name| name.starts_with(library));
    LIBRARIES.into_iter().flat_map(of).map(|name| directory.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_opened_behind_what_they_need() {
        let directory =
            std::env::temp_dir().join(format!("trtserver-preload-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for name in [
            "libcublas.so.13",
            "libcublasLt.so.13",
            "libcudnn.so.9",
            "libcudnn_ops.so.9",
            "other.so",
        ] {
            std::fs::write(directory.join(name), "").unwrap();
        }
        let found = beside(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        let names: Vec<_> = found.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        assert_eq!(names, ["libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9"]);
    }
}
