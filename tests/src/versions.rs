//! Backends in several versions, compiled from tests/plugins/versions and installed by rename as
//! installers do.

use crate::compile::compile;
use crate::install::root;
use crate::repository::probe;
use crate::server::Running;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A backend version to compile.
pub struct Version<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// OUTPUT0 of its models.
    pub number: f32,
    /// `MAJOR=…` and such.
    pub macros: &'a [&'a str],
}

impl Version<'_> {
    pub const fn named<'a>(name: &'a str, version: &'a str, number: f32) -> Version<'a> {
        Version { name, version, number, macros: &[] }
    }

    /// Compiles and renames it to `path` below `dir`, replacing an existing file.
    pub fn put(&self, dir: &Path, path: &str) -> PathBuf {
        let to = dir.join(path).join(format!("libtrtserver_{}.so", self.name));
        fs::create_dir_all(to.parent().unwrap_or(dir)).unwrap_or_else(|e| panic!("{e}"));
        let made = dir.join(format!(".{}-{}.part", self.name, self.version));
        self.compile(&made);
        fs::rename(&made, &to).unwrap_or_else(|e| panic!("{}: {e}", to.display()));
        to
    }

    /// Compiles it to this file.
    pub fn compile(&self, to: &Path) {
        let include = root().join("plugin-api/include");
        let mut options = vec![
            format!("-I{}", include.display()),
            format!("-DNAME=\"{}\"", self.name),
            format!("-DVERSION=\"{}\"", self.version),
        ];
        if !self.macros.contains(&"ISOLATION") {
            options.push(format!("-DNUMBER={:?}f", self.number));
        }
        options.extend(self.macros.iter().map(|text| format!("-D{text}")));
        compile("tests/plugins/versions/version.c", to, &options);
    }
}

/// A model of backend `backend`, of the version `pin` unless that is empty.
pub fn model(name: &str, backend: &str, pin: &str) -> String {
    let parameters = [("backend_version", pin)];
    let config = probe(name, if pin.is_empty() { &[] } else { &parameters });
    config.replace("backend: \"probe\"", &format!("backend: \"{backend}\""))
}

pub trait Versions {
    /// OUTPUT0 of the model.
    fn number(&self, model: &str) -> f64;
    /// `GET /v2/trtserver/backends`.
    fn backends(&self) -> Value;
    /// The models that use this version, and whether its file is still installed.
    fn users(&self, backend: &str, version: &str) -> (Vec<String>, bool);
}

impl Versions for Running {
    #[track_caller]
    fn number(&self, model: &str) -> f64 {
        let response = self.infer(model, "");
        assert_eq!(response.status, 200, "{model}: {}", response.text());
        let json: Value = serde_json::from_str(&response.text()).unwrap_or_default();
        json["outputs"][0]["data"][0].as_f64().unwrap_or_else(|| panic!("{json}"))
    }

    #[track_caller]
    fn backends(&self) -> Value {
        let response = self.get("/v2/trtserver/backends");
        assert_eq!(response.status, 200, "{}", response.text());
        serde_json::from_str(&response.text())
            .unwrap_or_else(|e| panic!("{e}: {}", response.text()))
    }

    #[track_caller]
    fn users(&self, backend: &str, version: &str) -> (Vec<String>, bool) {
        let all = self.backends();
        let entries = all["backends"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of = |b: &&Value| b["name"] == backend && b["version"] == version;
        let found = entries.iter().find(of).unwrap_or_else(|| panic!("no {version} in {all}"));
        let models = found["models"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names = models.iter().filter_map(|m| Some(m["name"].as_str()?.to_owned())).collect();
        (names, found["installed"] == true)
    }
}
