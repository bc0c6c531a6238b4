//! Which backend serves which platform: what installed backends declare, and well-known platforms
//! of backends that are not installed, for error messages.

use std::path::PathBuf;

use super::ConfigError;

/// A model may be a directory as a whole. This is its name in a version.
pub const WHOLE_DIRECTORY: &str = "model.savedmodel";
/// Such a directory has one of these files.
pub const WHOLE_DIRECTORY_FILES: [&str; 2] = ["saved_model.pb", "saved_model.pbtxt"];

/// The platform that the server itself serves.
pub const ENSEMBLE: &str = "ensemble";

/// Platforms of the installed backends, as they declare them.
pub trait PlatformDirectory {
    /// The backend that declares `platform`.
    fn find_backend(&self, platform: &str) -> Option<String>;
    /// The platforms that `backend` declares, in its order; empty if it declares none or is not
    /// installed.
    fn list_platforms(&self, backend: &str) -> Vec<String>;
    /// The model file of a platform, or of a backend by its name, if the configuration names none.
    fn default_file(&self, platform_or_backend: &str) -> Option<String>;
    /// Installed backends.
    fn installed_backends(&self) -> Vec<String>;
    /// Why files of this backend cannot be used.
    fn unusable(&self, _backend: &str) -> Vec<String> {
        Vec::new()
    }
    /// Directories that were searched for plugins, for error messages.
    fn searched_dirs(&self) -> Vec<PathBuf>;
}

/// A platform of a Triton release, and its backend, which may not be installed.
struct WellKnown {
    platform: &'static str,
    backend: &'static str,
    file: &'static str,
}

/// In the order in which the files of a model are compared with them: that of TRTIS
/// (docs/protocol/v1.md §7.4), with `tensorrt_plan` where 0.12 had it. The names and files are
/// those of docs/protocol/v1.md §6.1 and of later releases of Triton. A backend that is not listed
/// needs no row: its files are compared last.
const WELL_KNOWN: &[WellKnown] = &[
    WellKnown {
        platform: "tensorflow_savedmodel",
        backend: "tensorflow",
        file: "model.savedmodel",
    },
    WellKnown { platform: "tensorflow_graphdef", backend: "tensorflow", file: "model.graphdef" },
    WellKnown { platform: "tensorrt_plan", backend: "tensorrt", file: "model.plan" },
    WellKnown { platform: "pytorch_libtorch", backend: "pytorch", file: "model.pt" },
    WellKnown { platform: "caffe2_netdef", backend: "caffe2", file: "model.netdef" },
    WellKnown { platform: "onnxruntime_onnx", backend: "onnxruntime", file: "model.onnx" },
    WellKnown { platform: "torch_aoti", backend: "pytorch", file: "model.pt2" },
    WellKnown { platform: "custom", backend: "custom", file: "libcustom.so" },
    WellKnown { platform: "", backend: "openvino", file: "model.xml" },
    WellKnown { platform: "", backend: "python", file: "model.py" },
];

/// Older spellings of platforms: of 18.04 (docs/protocol/v1.md §7.6), and of early models of
/// PyTorch.
const ALIASES: &[(&str, &str)] =
    &[("tensorflow_saved_model", "tensorflow_savedmodel"), ("libtorch", "pytorch_libtorch")];

/// The current spelling of `platform`, unless a backend declares the given one.
pub(super) fn canonical_platform<'a>(
    platform: &'a str,
    platforms: &dyn PlatformDirectory,
) -> &'a str {
    if platforms.find_backend(platform).is_some() {
        return platform;
    }
    ALIASES.iter().find(|(old, _)| *old == platform).map_or(platform, |(_, new)| new)
}

/// The backend that serves `platform`: the one that declares it, else the one that serves it in
/// Triton, if that is installed and declares no platforms, as backends built for Triton do.
pub(super) fn serving_backend(platform: &str, platforms: &dyn PlatformDirectory) -> Option<String> {
    let of_triton = || {
        let backend = implied_backend(platform)?;
        let is_installed = platforms.installed_backends().iter().any(|name| name == backend);
        let serves = is_installed && platforms.list_platforms(backend).is_empty();
        serves.then(|| backend.to_owned())
    };
    platforms.find_backend(platform).or_else(of_triton)
}

/// The backend that serves `platform` in Triton.
pub fn implied_backend(platform: &str) -> Option<&'static str> {
    let platform =
        ALIASES.iter().find(|(old, _)| *old == platform).map_or(platform, |(_, new)| new);
    let mut known = WELL_KNOWN.iter().filter(|known| !known.platform.is_empty());
    known.find(|known| known.platform == platform).map(|known| known.backend)
}

/// Whether Triton has a backend of this name that serves platforms.
pub(super) fn is_backend_of_triton(backend: &str) -> bool {
    WELL_KNOWN.iter().any(|known| !known.platform.is_empty() && known.backend == backend)
}

/// The model file of a platform that `backend` serves in Triton.
pub(super) fn well_known_file(platform: &str, backend: &str) -> Option<String> {
    let mut known = WELL_KNOWN.iter().filter(|known| !known.platform.is_empty());
    let known = known.find(|known| known.platform == platform && known.backend == backend)?;
    Some(known.file.to_owned())
}

/// Position of a platform, or of a backend without platforms, in the order of detection. Unknown
/// ones are last.
pub(super) fn platform_rank(platform: &str, backend: &str) -> usize {
    let is_it = |known: &WellKnown| match platform {
        "" => known.platform.is_empty() && known.backend == backend,
        _ => known.platform == platform,
    };
    WELL_KNOWN.iter().position(is_it).unwrap_or(WELL_KNOWN.len())
}

/// Whether it is a platform of a Triton release.
pub(super) fn is_well_known(platform: &str) -> bool {
    WELL_KNOWN.iter().any(|known| known.platform == platform)
}

/// The error for a platform that no installed backend declares.
pub(super) fn undeclared_platform(
    platform: &str,
    model: &str,
    platforms: &dyn PlatformDirectory,
) -> ConfigError {
    let reason = match WELL_KNOWN.iter().find(|k| k.platform == platform) {
        Some(known) => format!("it needs the backend '{}', which is not installed", known.backend),
        None => "no installed backend serves it".to_owned(),
    };
    let installed = installed_platforms_text(platforms);
    ConfigError::unsupported(format!(
        "unexpected platform type '{platform}' for {model}: {reason}; {installed}"
    ))
}

/// The error for a backend that is not installed.
pub(super) fn not_installed(
    backend: &str,
    model: &str,
    platforms: &dyn PlatformDirectory,
) -> ConfigError {
    let installed = installed_platforms_text(platforms);
    let reasons = platforms.unusable(backend);
    let reasons = match reasons.is_empty() {
        true => String::new(),
        false => format!(": {}", reasons.join("; ")),
    };
    ConfigError::invalid(format!(
        "unable to find backend library for backend '{backend}', try specifying runtime on the model configuration. \
         Model '{model}' needs it{reasons}; {installed}"
    ))
}

/// The first entry that is the model file of a well-known backend that is not installed, and that
/// backend.
pub(super) fn recognised_platform<'a>(
    entries: &'a [(String, bool)],
    platforms: &dyn PlatformDirectory,
) -> Option<(&'a str, &'static str)> {
    let installed = platforms.installed_backends();
    let absent = |known: &&WellKnown| !installed.iter().any(|backend| backend == known.backend);
    WELL_KNOWN.iter().filter(absent).find_map(|known| {
        let (file, _) = entries.iter().find(|(entry, _)| entry == known.file)?;
        Some((file.as_str(), known.backend))
    })
}

/// The installed backends and the searched directories, as the end of a sentence.
pub(super) fn installed_platforms_text(platforms: &dyn PlatformDirectory) -> String {
    let mut backends = Vec::new();
    for backend in platforms.installed_backends() {
        let served = platforms.list_platforms(&backend);
        backends.push(match served.is_empty() {
            true => backend,
            false => format!("{backend} ({})", served.join(", ")),
        });
    }
    let dirs: Vec<_> = platforms.searched_dirs().iter().map(|d| d.display().to_string()).collect();
    let or_none = |list: Vec<String>| match list.is_empty() {
        true => "none".to_owned(),
        false => list.join(", "),
    };
    format!(
        "installed backends: {}; searched (--backend-dir): {}",
        or_none(backends),
        or_none(dirs)
    )
}
