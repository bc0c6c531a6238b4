//! Which backend serves which platform: what plugins declare, and the names of those that are not
//! installed, kept only to say clearly what is missing.

use std::path::PathBuf;

use super::ConfigError;

/// The one platform the server serves itself.
pub const ENSEMBLE: &str = "ensemble";

/// What the installed plugins declare. The plugin registry answers; nothing here is hard-wired.
pub trait Platforms {
    /// The backend whose plugin declares `platform`.
    fn backend_of(&self, platform: &str) -> Option<String>;
    /// The platforms that `backend` declares, in its own order; empty for one that has none or that
    /// is not installed.
    fn platforms_of(&self, backend: &str) -> Vec<String>;
    /// The model file that a platform, or a backend by its own name, expects when the configuration
    /// names none.
    fn default_file(&self, platform_or_backend: &str) -> Option<String>;
    /// Installed backends. Where a directory could belong to several, the earlier one gets it.
    fn known_backends(&self) -> Vec<String>;
    /// The directories that were searched for plugins, for error messages.
    fn searched(&self) -> Vec<PathBuf>;
}

/// A platform some release served, by a backend that may not be installed here.
struct Known {
    platform: &'static str,
    backend: &'static str,
    file: &'static str,
}

const KNOWN: &[Known] = &[
    Known { platform: "tensorrt_plan", backend: "tensorrt", file: "model.plan" },
    Known { platform: "tensorflow_graphdef", backend: "tensorflow", file: "model.graphdef" },
    Known { platform: "tensorflow_savedmodel", backend: "tensorflow", file: "model.savedmodel" },
    Known { platform: "caffe2_netdef", backend: "caffe2", file: "model.netdef" },
    Known { platform: "onnxruntime_onnx", backend: "onnxruntime", file: "model.onnx" },
    Known { platform: "pytorch_libtorch", backend: "pytorch", file: "model.pt" },
    Known { platform: "torch_aoti", backend: "pytorch", file: "model.pt2" },
    Known { platform: "custom", backend: "custom", file: "libcustom.so" },
    Known { platform: "", backend: "openvino", file: "model.xml" },
    Known { platform: "", backend: "python", file: "model.py" },
];

/// Older or looser spellings of platforms.
const ALIASES: &[(&str, &str)] =
    &[("tensorflow_saved_model", "tensorflow_savedmodel"), ("libtorch", "pytorch_libtorch")];

/// The platform as it is spelled today, unless a plugin claims the spelling given.
pub(super) fn canonical<'a>(platform: &'a str, platforms: &dyn Platforms) -> &'a str {
    if platforms.backend_of(platform).is_some() {
        return platform;
    }
    ALIASES.iter().find(|(old, _)| *old == platform).map_or(platform, |(_, new)| new)
}

/// Nobody declares `platform`.
pub(super) fn unclaimed(platform: &str, model: &str, platforms: &dyn Platforms) -> ConfigError {
    let why = match KNOWN.iter().find(|k| k.platform == platform) {
        Some(known) => format!("it needs the backend '{}', which is not installed", known.backend),
        None => "no installed backend serves it".to_owned(),
    };
    let there = installed(platforms);
    ConfigError::unsupported(format!(
        "unexpected platform type '{platform}' for {model}: {why}; {there}"
    ))
}

/// No plugin is called `backend`.
pub(super) fn not_installed(backend: &str, model: &str, platforms: &dyn Platforms) -> ConfigError {
    let there = installed(platforms);
    ConfigError::unsupported(format!(
        "unable to find backend library for backend '{backend}', needed by model '{model}'; {there}"
    ))
}

/// The first entry that a known backend would take for its model though it is not installed, and
/// that backend.
pub(super) fn recognised<'a>(
    entries: &'a [String],
    platforms: &dyn Platforms,
) -> Option<(&'a str, &'static str)> {
    let installed = platforms.known_backends();
    let absent = |known: &&Known| !installed.iter().any(|backend| backend == known.backend);
    KNOWN.iter().filter(absent).find_map(|known| {
        let file = entries.iter().find(|entry| *entry == known.file)?;
        Some((file.as_str(), known.backend))
    })
}

/// What is installed and where it was looked for, as the end of a sentence.
pub(super) fn installed(platforms: &dyn Platforms) -> String {
    let mut backends = Vec::new();
    for backend in platforms.known_backends() {
        let served = platforms.platforms_of(&backend);
        backends.push(match served.is_empty() {
            true => backend,
            false => format!("{backend} ({})", served.join(", ")),
        });
    }
    let dirs: Vec<_> = platforms.searched().iter().map(|d| d.display().to_string()).collect();
    let or_none = |list: Vec<String>| match list.is_empty() {
        true => "none".to_owned(),
        false => list.join(", "),
    };
    format!(
        "installed backends: {}; looked in (--backend-dir): {}",
        or_none(backends),
        or_none(dirs)
    )
}
