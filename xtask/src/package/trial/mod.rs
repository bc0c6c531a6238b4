//! `cargo xtask package --try-in SUITE`: the packages are installed in a Debian that has nothing but
//! Python, and a model is asked. Needs the rights of root and the registries of Debian and Python.

mod deb;
mod image;
mod old_processor;
mod root;

use super::debian_root::DebianRoot;
use super::server_wheel;
use crate::command::{Result, run, say};
use crate::paths::Paths;
use root::TrialRoot;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const PACKAGES: &str = "ca-certificates,python3,python3-venv";
/// Systems by the names of their releases.
const SUITES: [DebianRoot; 2] = [
    DebianRoot { name: "bullseye", suite: "bullseye", packages: PACKAGES },
    DebianRoot { name: "bookworm", suite: "bookworm", packages: PACKAGES },
];
pub const SUITE_NAMES: [&str; 2] = [SUITES[0].name, SUITES[1].name];

/// From an empty system to the first answer, downloads included.
const ANSWER_WITHIN_SECONDS: f64 = 60.0;
/// Places in the root.
const ENVIRONMENT: &str = "/opt/environment";
const MODELS: &str = "/try/models";

/// What was packed, and where.
pub struct Trial<'a> {
    pub paths: &'a Paths,
    /// The directory with the packages.
    pub packages: &'a Path,
    /// Platform of the wheel's name.
    pub platform: &'a str,
    pub kinds: Vec<&'a str>,
    /// Frameworks beside ONNX Runtime.
    pub tensorflow: bool,
}

impl Trial<'_> {
    fn has(&self, kind: &str) -> bool {
        self.kinds.contains(&kind)
    }

    /// Returns what took longer than it may: that does not keep the other packages from being tried.
    ///
    /// # Errors
    /// A package cannot be installed, or does not answer.
    pub fn run_in(&self, suite: &str) -> Result<Option<String>> {
        let mut late = None;
        if self.kinds == ["image"] {
            return Ok(late);
        }
        for system in SUITES.iter().filter(|system| system.name == suite) {
            let pristine = system.make(self.paths)?;
            let root = TrialRoot::copy(self.paths, &pristine, system.name)?;
            root.put_directory(&self.paths.root.join("packaging/try"), "try")?;
            root.put_directory(
                &self.paths.root.join("examples/models/dynamic_shape"),
                "try/models/dynamic_shape",
            )?;
            if self.has("wheel") {
                late = self.try_wheel(&root)?;
                if std::env::consts::ARCH == "x86_64" {
                    old_processor::try_wheel(self, &root)?;
                }
            } else {
                // The library that the other packages use.
                root.run(&["python3", "-m", "venv", ENVIRONMENT])?;
                self.pip_install(&root, "onnxruntime")?;
            }
            if self.has("archive") {
                self.try_archive(&root)?;
            }
            if self.has("deb") {
                deb::try_package(self, &root)?;
            }
            if self.has("wheel") && self.tensorflow {
                self.try_tensorflow(&root)?;
            }
        }
        Ok(late)
    }

    /// The image has a root of its own.
    ///
    /// # Errors
    /// The image cannot be unpacked, or does not answer.
    pub fn run_image(&self) -> Result<()> {
        image::try_image(self)
    }

    /// Installs the wheel, which brings the libraries that the other packages use as well. Returns what
    /// took longer than it may.
    fn try_wheel(&self, root: &TrialRoot) -> Result<Option<String>> {
        let start = Instant::now();
        root.run(&["python3", "-m", "venv", ENVIRONMENT])?;
        self.install_wheel(root, "onnx")?;
        let server = format!("{ENVIRONMENT}/bin/trtserver");
        self.answer(root, "dynamic_shape", MODELS, &[&server])?;
        let took = start.elapsed().as_secs_f64();
        say(format!(
            "package: {}: wheel[onnx] answered {took:.0} s after the empty system",
            root.name
        ));
        let python = format!("{ENVIRONMENT}/bin/python");
        self.answer(root, "dynamic_shape", MODELS, &[&python, "-m", "trtserver"])?;
        root.run(&[&format!("{ENVIRONMENT}/bin/trtserver-perf"), "--version"])?;
        Ok((took > ANSWER_WITHIN_SECONDS).then(|| {
            let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
            format!(
                "{}: the first answer took {took:.0} s, expected {ANSWER_WITHIN_SECONDS} s; load averages of this \
                 machine: {}",
                root.name,
                load.trim()
            )
        }))
    }

    fn try_tensorflow(&self, root: &TrialRoot) -> Result<()> {
        let start = Instant::now();
        self.install_wheel(root, "tensorflow")?;
        let models = self.paths.root.join("examples/models-tensorflow");
        root.put_directory(&models, "try/models-tensorflow")?;
        let server = format!("{ENVIRONMENT}/bin/trtserver");
        self.answer(root, "digits_savedmodel", "/try/models-tensorflow", &[&server])?;
        let took = start.elapsed().as_secs_f64();
        say(format!("package: {}: wheel[tensorflow] answered after {took:.0} s", root.name));
        Ok(())
    }

    fn install_wheel(&self, root: &TrialRoot, extra: &str) -> Result<()> {
        let wheel = server_wheel::wheel_path(self.packages, self.platform);
        let inside = root.put(&wheel, "try")?;
        self.pip_install(root, &format!("{inside}[{extra}]"))
    }

    fn pip_install(&self, root: &TrialRoot, what: &str) -> Result<()> {
        let pip = format!("{ENVIRONMENT}/bin/pip");
        root.run(&[&pip, "install", "--quiet", "--no-cache-dir", what])
    }

    fn try_archive(&self, root: &TrialRoot) -> Result<()> {
        let archive = super::archive::archive_path(self.packages);
        let mut unpack = std::process::Command::new("tar");
        unpack.arg("--zstd").arg("-xf").arg(&archive).arg("-C").arg(root.path().join("opt"));
        run(&mut unpack, "tar needs the program zstd")?;
        let name = super::archive::root_name();
        let server = format!("/opt/{name}/bin/trtserver");
        let library = format!("--backend-config=onnxruntime,library={}", self.onnx_library(root)?);
        self.answer(root, "dynamic_shape", MODELS, &[&server, &library])?;
        say(format!("package: {}: the archive answered", root.name));
        Ok(())
    }

    /// The library that pip has installed, as a path in the root.
    fn onnx_library(&self, root: &TrialRoot) -> Result<String> {
        let found = root.find(&PathBuf::from("opt/environment"), "libonnxruntime.so.")?;
        found.ok_or_else(|| format!("no libonnxruntime.so below {ENVIRONMENT}"))
    }

    /// Starts the command with a repository and asks a model of it.
    fn answer(&self, root: &TrialRoot, model: &str, models: &str, server: &[&str]) -> Result<()> {
        let repository = format!("--model-repository={models}");
        let begin = ["python3", "/try/answer.py", model];
        root.run(&[&begin, server, &[&repository]].concat())
    }
}
