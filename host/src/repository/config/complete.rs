//! Fills what a configuration leaves out but its directory tells: name, platform, backend, file.
//!
//! Always done, strict configuration or not, because none of it needs the model to be opened.

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

use super::platforms::{self, ENSEMBLE, Platforms};
use super::{ConfigError, refuse};

/// Completes `config` of the model in the directory `dir_name`, whose version directories hold the
/// entries listed in `versions`.
///
/// A platform implies its backend. A backend implies its platform when it has only one, or when the
/// file name or the files found single one out. Where neither is given, both follow from the file
/// name, else from the files found, else the backend is what follows the first dot in the model's
/// name. The platform stays empty for a backend that declares none.
pub fn complete(
    config: &mut ModelConfig,
    dir_name: &str,
    versions: &[(i64, Vec<String>)],
    platforms: &dyn Platforms,
) -> Result<(), ConfigError> {
    if config.name.is_empty() {
        config.name = dir_name.to_owned();
    } else if config.name != dir_name {
        return refuse(format!(
            "unexpected directory name '{dir_name}' for model '{}', directory name must equal \
             model name",
            config.name
        ));
    }
    if config.platform == ENSEMBLE {
        return Ok(());
    }
    config.platform = platforms::canonical(&config.platform, platforms).to_owned();
    match (config.backend.is_empty(), config.platform.is_empty()) {
        (false, false) => agree(config, platforms)?,
        (true, false) => match platforms.backend_of(&config.platform) {
            Some(backend) => config.backend = backend,
            None => return Err(platforms::unclaimed(&config.platform, &config.name, platforms)),
        },
        (false, true) => {
            installed(config, platforms)?;
            config.platform = platform_of(config, versions, platforms);
        }
        (true, true) => detect(config, versions, platforms)?,
    }
    if config.default_model_filename.is_empty() {
        let by_platform = platforms.default_file(&config.platform);
        let file = by_platform.or_else(|| platforms.default_file(&config.backend));
        config.default_model_filename = file.unwrap_or_default();
    }
    Ok(())
}

fn installed(config: &ModelConfig, platforms: &dyn Platforms) -> Result<(), ConfigError> {
    match platforms.known_backends().contains(&config.backend) {
        true => Ok(()),
        false => Err(platforms::not_installed(&config.backend, &config.name, platforms)),
    }
}

/// Both are given: the backend must be there and must not contradict the platform.
fn agree(config: &ModelConfig, platforms: &dyn Platforms) -> Result<(), ConfigError> {
    installed(config, platforms)?;
    let served = platforms.platforms_of(&config.backend);
    let elsewhere = platforms.backend_of(&config.platform).is_some_and(|b| b != config.backend);
    let unserved = !served.is_empty() && !served.contains(&config.platform);
    // Two plugins may claim one platform: naming the backend decides between them.
    if unserved || (served.is_empty() && elsewhere) {
        return refuse(format!(
            "unexpected 'platform' and 'backend' pair, got:{}, {} for {}",
            config.platform, config.backend, config.name
        ));
    }
    Ok(())
}

/// The platform among those of the given backend, empty when nothing singles one out.
fn platform_of(
    config: &ModelConfig,
    versions: &[(i64, Vec<String>)],
    platforms: &dyn Platforms,
) -> String {
    let served = platforms.platforms_of(&config.backend);
    if let [only] = served.as_slice() {
        return only.clone();
    }
    let files: Vec<_> = served
        .into_iter()
        .filter_map(|platform| Some((platforms.default_file(&platform)?, platform)))
        .collect();
    let by_name = named(&config.default_model_filename, &files);
    by_name.or_else(|| found(config, versions, &files)).cloned().unwrap_or_default()
}

/// Neither is given.
fn detect(
    config: &mut ModelConfig,
    versions: &[(i64, Vec<String>)],
    platforms: &dyn Platforms,
) -> Result<(), ConfigError> {
    // Each candidate is a backend with one of its platforms, or with none.
    let mut files = Vec::new();
    for backend in platforms.known_backends() {
        for platform in platforms.platforms_of(&backend) {
            if let Some(file) = platforms.default_file(&platform) {
                files.push((file, (backend.clone(), platform)));
            }
        }
        if let Some(file) = platforms.default_file(&backend) {
            files.push((file, (backend, String::new())));
        }
    }
    let by_name = named(&config.default_model_filename, &files);
    if let Some((backend, platform)) = by_name.or_else(|| found(config, versions, &files)) {
        config.backend = backend.clone();
        config.platform = platform.clone();
        return Ok(());
    }
    let name = &config.name;
    if let Some((_, backend)) = name.split_once('.').filter(|(_, backend)| !backend.is_empty()) {
        config.backend = backend.to_owned();
        installed(config, platforms)?;
        if config.default_model_filename.is_empty() {
            config.default_model_filename = format!("model.{}", config.backend);
        }
        return Ok(());
    }
    let missing = versions.iter().find_map(|(version, entries)| {
        platforms::recognised(entries, platforms).map(|(file, backend)| (version, file, backend))
    });
    if matches!(config.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_))) {
        return Err(ConfigError::invalid(format!(
            "ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble: it \
             needs platform: \"ensemble\""
        )));
    }
    let why = match missing {
        Some((version, file, backend)) => format!(
            " Version {version} holds '{file}', which needs the backend '{backend}', not \
             installed; {}.",
            platforms::installed(platforms)
        ),
        None => String::new(),
    };
    let message = format!(
        "Invalid model name: Could not determine backend for model '{name}' with no backend in \
         model configuration. Expected model name of the form 'model.<backend_name>'.{why}"
    );
    Err(if why.is_empty() {
        ConfigError::invalid(message)
    } else {
        ConfigError::unsupported(message)
    })
}

/// The candidate whose default file is `file`, else the only one whose default file ends alike.
fn named<'a, T>(file: &str, candidates: &'a [(String, T)]) -> Option<&'a T> {
    if let Some((_, exact)) = candidates.iter().find(|(default, _)| default == file) {
        return Some(exact);
    }
    let (_, ending) = file.rsplit_once('.')?;
    let alike = |default: &str| default.rsplit_once('.').is_some_and(|(_, e)| e == ending);
    let mut alike = candidates.iter().filter(|(default, _)| alike(default));
    match (alike.next(), alike.next()) {
        (Some((_, only)), None) => Some(only),
        _ => None,
    }
}

/// The first candidate whose default file lies in the first version directory that has any. A
/// file name in the configuration speaks for itself: then the listing is not asked.
fn found<'a, T>(
    config: &ModelConfig,
    versions: &[(i64, Vec<String>)],
    candidates: &'a [(String, T)],
) -> Option<&'a T> {
    if !config.default_model_filename.is_empty() {
        return None;
    }
    versions.iter().find_map(|(_, entries)| {
        candidates.iter().find(|(default, _)| entries.contains(default)).map(|(_, c)| c)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Installed, parse};
    use super::super::{Fault, normalise};
    use super::*;

    const TWO: Installed = Installed(&[
        ("onnxruntime", &[("onnxruntime_onnx", "model.onnx")]),
        (
            "tensorflow",
            &[
                ("tensorflow_graphdef", "model.graphdef"),
                ("tensorflow_savedmodel", "model.savedmodel"),
            ],
        ),
        ("identity", &[]),
        ("python", &[("", "model.py")]),
    ]);

    fn run(text: &str, dir: &str, files: &[&str]) -> Result<ModelConfig, ConfigError> {
        let files = files.iter().map(|f| (*f).to_owned()).collect();
        let mut config = parse(text);
        complete(&mut config, dir, &[(1, files)], &TWO).map(|()| config)
    }

    #[test]
    fn platform_backend_and_file_follow_from_each_other() {
        // Configuration, files of version 1, then platform, backend and file.
        type Row = (&'static str, &'static [&'static str], [&'static str; 3]);
        let onnx = ["onnxruntime_onnx", "onnxruntime", "model.onnx"];
        let saved = ["tensorflow_savedmodel", "tensorflow", "model.savedmodel"];
        let rows: &[Row] = &[
            ("platform: 'onnxruntime_onnx'", &[], onnx),
            ("backend: 'onnxruntime'", &[], onnx),
            ("platform: 'onnxruntime_onnx' backend: 'onnxruntime'", &[], onnx),
            ("default_model_filename: 'model.onnx'", &[], onnx),
            ("", &["readme", "model.onnx"], onnx),
            ("platform: 'tensorflow_saved_model'", &[], saved),
            ("backend: 'tensorflow'", &["model.savedmodel"], saved),
            ("", &["model.savedmodel"], saved),
            ("backend: 'tensorflow'", &[], ["", "tensorflow", ""]),
            (
                "default_model_filename: 'resnet.onnx'",
                &["model.savedmodel"],
                ["onnxruntime_onnx", "onnxruntime", "resnet.onnx"],
            ),
            (
                "backend: 'tensorflow' default_model_filename: 'x.graphdef'",
                &["model.savedmodel"],
                ["tensorflow_graphdef", "tensorflow", "x.graphdef"],
            ),
            ("backend: 'identity'", &[], ["", "identity", ""]),
            ("backend: 'identity' platform: 'anything'", &[], ["anything", "identity", ""]),
            ("backend: 'python'", &[], ["", "python", "model.py"]),
            ("", &["model.py"], ["", "python", "model.py"]),
            // Both are there: the backend that the registry lists first.
            ("", &["model.py", "model.onnx"], onnx),
            ("platform: 'ensemble'", &["model.onnx"], ["ensemble", "", ""]),
        ];
        for (text, files, expected) in rows {
            let config = run(text, "m", files).unwrap();
            assert_eq!(config.name, "m");
            let got = [&*config.platform, &*config.backend, &*config.default_model_filename];
            assert_eq!(got, *expected, "{text:?} {files:?}");
        }
    }

    #[test]
    fn the_name_may_tell_the_backend() {
        let config = run("", "m.identity", &[]).unwrap();
        assert_eq!(config.backend, "identity");
        assert_eq!(config.default_model_filename, "model.identity");
        let config = run("default_model_filename: 'x'", "m.identity", &[]).unwrap();
        assert_eq!(config.default_model_filename, "x");
    }

    #[test]
    fn complaints() {
        use Fault::{Invalid, Unsupported};
        const THERE: &str = "installed backends: onnxruntime (onnxruntime_onnx), tensorflow \
                             (tensorflow_graphdef, tensorflow_savedmodel), identity, python; \
                             looked in (--backend-dir): /backends";
        let unknown = "Invalid model name: Could not determine backend for model 'm' with no \
                       backend in model configuration. Expected model name of the form \
                       'model.<backend_name>'.";
        for (text, files, fault, message) in [
            (
                "name: 'n'",
                &[][..],
                Invalid,
                "unexpected directory name 'm' for model 'n', directory name must equal model name"
                    .to_owned(),
            ),
            ("", &["readme"][..], Invalid, unknown.to_owned()),
            (
                "ensemble_scheduling {}",
                &[][..],
                Invalid,
                "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble: it \
                 needs platform: \"ensemble\""
                    .to_owned(),
            ),
            ("default_model_filename: 'm.bin'", &["model.onnx"][..], Invalid, unknown.to_owned()),
            (
                "",
                &["model.plan"][..],
                Unsupported,
                format!(
                    "{unknown} Version 1 holds 'model.plan', which needs the backend 'tensorrt', \
                     not installed; {THERE}."
                ),
            ),
            (
                "platform: 'tensorrt_plan'",
                &[][..],
                Unsupported,
                format!(
                    "unexpected platform type 'tensorrt_plan' for m: it needs the backend \
                     'tensorrt', which is not installed; {THERE}"
                ),
            ),
            (
                "platform: 'mxnet'",
                &[][..],
                Unsupported,
                format!(
                    "unexpected platform type 'mxnet' for m: no installed backend serves it; \
                     {THERE}"
                ),
            ),
            (
                "backend: 'tensorrt' platform: 'tensorrt_plan'",
                &[][..],
                Unsupported,
                format!(
                    "unable to find backend library for backend 'tensorrt', needed by model 'm'; \
                     {THERE}"
                ),
            ),
            (
                "backend: 'onnxruntime' platform: 'tensorflow_graphdef'",
                &[][..],
                Invalid,
                "unexpected 'platform' and 'backend' pair, got:tensorflow_graphdef, onnxruntime \
                 for m"
                    .to_owned(),
            ),
            (
                "backend: 'identity' platform: 'onnxruntime_onnx'",
                &[][..],
                Invalid,
                "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, identity for m"
                    .to_owned(),
            ),
        ] {
            let error = run(text, "m", files).unwrap_err();
            assert_eq!((error.fault, error.message), (fault, message), "{text:?} {files:?}");
        }
    }

    #[test]
    fn a_server_without_plugins_says_so() {
        let mut config = parse("platform: 'custom'");
        let error = complete(&mut config, "m", &[], &Installed(&[])).unwrap_err();
        assert_eq!(
            error.message,
            "unexpected platform type 'custom' for m: it needs the backend 'custom', which is not \
             installed; installed backends: none; looked in (--backend-dir): /backends"
        );
    }

    #[test]
    fn all_steps_together() {
        let mut config = parse("max_batch_size: 8");
        let versions = [(1, vec![]), (2, vec!["model.onnx".to_owned()])];
        complete(&mut config, "m", &versions, &TWO).unwrap();
        normalise(&mut config, &super::super::Machine::with_gpus(0), &[]);
        let expected = "name: 'm' platform: 'onnxruntime_onnx' backend: 'onnxruntime' \
             default_model_filename: 'model.onnx' max_batch_size: 8 \
             version_policy { latest { num_versions: 1 } } \
             optimization { input_pinned_memory { enable: true } \
             output_pinned_memory { enable: true } } \
             instance_group { name: 'm' kind: KIND_CPU count: 1 }";
        assert_eq!(config, parse(expected));
        assert_eq!(super::super::check(&config, &super::super::Machine::default()), Ok(vec![]));
    }
}
