//! Set-up of the unit tests of `model_config`.

use std::path::PathBuf;

use trtserver_proto::v2::ModelConfig;

use super::{
    ConfigError, FileProbe, InstanceSupport, MachineFacts, MachineGpu, PlatformCandidate,
    PlatformDirectory, VersionListing,
};

pub fn parse(text: &str) -> ModelConfig {
    trtserver_proto::text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Normalises and checks a configuration, given as text.
pub fn checked(text: &str, machine: &MachineFacts) -> Result<Vec<String>, ConfigError> {
    let mut config = parse(text);
    let support = InstanceSupport::every_kind();
    super::normalise_config(&mut config, machine, &support);
    let checked = super::check_config(&config, machine, &support, 1024);
    let warnings = checked.map_err(|refused| refused[0].clone())?;
    Ok(warnings.into_iter().map(|warning| warning.message).collect())
}

/// A machine with GPUs of these ids, all of compute capability 7.5.
pub fn machine(gpus: &[i32]) -> MachineFacts {
    MachineFacts::new(gpus.iter().map(|&id| gpu(id, (7, 5))).collect(), 0.0)
}

pub fn gpu(id: i32, compute: (i32, i32)) -> MachineGpu {
    MachineGpu { id, name: format!("G{id}"), compute }
}

/// Each row: what is added to `base`, and the exact error, or "" for none.
pub fn check_errors(base: &str, rows: &[(&str, &str)]) {
    for (added, expected) in rows {
        let got = checked(&format!("{base} {added}"), &MachineFacts::default());
        let got = got.map(|_| String::new()).unwrap_or_else(|e| e.message);
        assert_eq!(&got, expected, "{added}");
    }
}

/// Backends with their platforms and default files; a platform "" is the backend itself.
pub struct Installed(pub &'static [(&'static str, &'static [(&'static str, &'static str)])]);

impl PlatformDirectory for Installed {
    fn find_backend(&self, platform: &str) -> Option<String> {
        let served = |list: &[(&str, &str)]| {
            !platform.is_empty() && list.iter().any(|(name, _)| *name == platform)
        };
        self.0.iter().find(|(_, list)| served(list)).map(|(backend, _)| (*backend).to_owned())
    }

    fn list_platforms(&self, backend: &str) -> Vec<String> {
        let list = self.0.iter().find(|(name, _)| *name == backend).map_or(&[][..], |(_, l)| l);
        list.iter().filter(|(p, _)| !p.is_empty()).map(|(p, _)| (*p).to_owned()).collect()
    }

    fn default_file(&self, platform_or_backend: &str) -> Option<String> {
        self.0.iter().find_map(|(backend, list)| {
            let own = |p: &str| {
                p == platform_or_backend || (p.is_empty() && *backend == platform_or_backend)
            };
            list.iter()
                .find(|(p, _)| !platform_or_backend.is_empty() && own(p))
                .map(|(_, f)| (*f).to_owned())
        })
    }

    fn installed_backends(&self) -> Vec<String> {
        self.0.iter().map(|(backend, _)| (*backend).to_owned()).collect()
    }

    fn searched_dirs(&self) -> Vec<PathBuf> {
        vec![PathBuf::from("/backends")]
    }
}

/// A version with these entries; directories end in `/`.
pub fn listing(number: i64, entries: &[&str]) -> VersionListing {
    let entry = |e: &&str| (e.trim_end_matches('/').to_owned(), e.ends_with('/'));
    let dir = PathBuf::from(format!("/models/m/{number}"));
    VersionListing { number, dir, entries: entries.iter().map(entry).collect() }
}

/// TensorFlow recognises one directory of any name, and `model.graphdef` alone; other backends
/// recognise default files.
pub struct TwoRules;

impl FileProbe for TwoRules {
    fn probe(
        &self,
        _: &ModelConfig,
        candidate: &PlatformCandidate,
        version: &VersionListing,
    ) -> Result<Option<String>, String> {
        let (dirs, files): (Vec<_>, Vec<_>) =
            version.entries.iter().partition(|(_, is_dir)| *is_dir);
        match (&*candidate.platform, dirs.as_slice(), files.as_slice()) {
            ("tensorflow_savedmodel", [(only, _)], _) => Ok(Some(only.clone())),
            ("tensorflow_savedmodel", dirs, _) => {
                Err(format!("expected one directory, found {}", dirs.len()))
            }
            ("tensorflow_graphdef", _, [(only, _)]) if *only == candidate.default_file => {
                Ok(Some(only.clone()))
            }
            ("tensorflow_graphdef", ..) => Err("expected the file 'model.graphdef' alone".into()),
            _ => Ok(None),
        }
    }
}
