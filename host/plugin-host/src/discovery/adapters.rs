//! Adapters: plugins that open the backend libraries of another server.
//!
//! The `plugin.toml` beside an adapter has a table `[adapter]`, which says which files it opens:
//!
//! ```toml
//! isolation = "process"               # where models of its backends run by default
//!
//! [adapter]
//! file = "libtritonserver.so"         # the adapter
//! library = "libtriton_{name}.so"     # opens NAME/libtriton_NAME.so below a backend directory as the backend NAME
//! directory-file = "model.py"         # also NAME/model.py, without a library of its own,
//! directory-backend = "python"        # through the library of this backend
//!
//! [adapter.default-files]             # of models whose configuration names none, by backend
//! python = "model.py"
//!
//! [settings]                          # of all its backends
//! ```
//!
//! The version of such a backend is the adapter's name and version, such as `triton-1.19`.
//! `backend_open` of the adapter gets the backend's name, the directory of its file, and as
//! settings those of the server ([`AdapterOptions::settings`]), [`DIRECTORY`], [`LIBRARY`],
//! `[settings]` of the adapter and of a `plugin.toml` beside the file, and `--backend-config`;
//! later ones override earlier ones.

use super::candidate::{Candidate, NamedDir};
use super::manifest::{AdapterKeys, Manifest, read_manifest};
use crate::plugin_file::{AdaptedLibrary, PluginFile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trtserver_base::error::Error;

/// Setting of an adapted backend: the backend directory that its own directory is in.
pub const DIRECTORY: &str = "backend-directory";
/// Setting of an adapted backend: the library to open. It belongs to another backend if the
/// backend's own file is not a library.
pub const LIBRARY: &str = "adapted-library";
/// What the server gives to all adapters.
#[derive(Clone, Default)]
pub struct AdapterOptions {
    /// Directories in which adapters are looked for after the backend directories.
    pub dirs: Vec<PathBuf>,
    /// Settings of all adapted backends.
    pub settings: BTreeMap<String, String>,
}

/// An adapter that was found.
pub struct Adapter {
    /// Name of the adapter's directory.
    name: String,
    library: PathBuf,
    keys: AdapterKeys,
    manifest: Manifest,
}

impl Adapter {
    /// `manifest` is that of `dir`, `keys` its table `[adapter]`.
    pub fn new(dir: &Path, keys: AdapterKeys, manifest: Manifest) -> Self {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, library: dir.join(&keys.file), keys, manifest }
    }

    /// The backend that it opens from `dir`, or why it cannot; `None` if the directory has no file
    /// for it.
    fn candidate(
        &self,
        dir: &NamedDir,
        all: &[NamedDir],
    ) -> Option<Result<Candidate, Box<(Candidate, Error)>>> {
        let own = dir.path.join(self.keys.library_name(&dir.name));
        if own.is_file() {
            return Some(self.adapted(dir, &own, &own));
        }
        let file = dir.path.join(self.keys.directory_file.as_ref()?);
        let through = self.keys.directory_backend.as_ref()?;
        if !file.is_file() {
            return None;
        }
        let library = self.keys.library_name(through);
        // The library in the same backend directory comes first.
        let beside = dir.path.parent().map(|root| root.join(through));
        let others = all.iter().filter(|other| other.name == *through).map(|o| o.path.clone());
        let mut found = beside.into_iter().chain(others).map(|dir| dir.join(&library));
        Some(match found.find(|path| path.is_file()) {
            Some(library) => self.adapted(dir, &file, &library),
            None => {
                let text = format!(
                    "backend '{}' needs {library} of the backend '{through}', which is in no backend directory",
                    file.display()
                );
                Err(Box::new((self.unchecked(dir, &file, &file), Error::unsupported(text))))
            }
        })
    }

    /// The backend `name` whose library is in `dir`, a directory of a model; `None` if the
    /// directory has none.
    pub fn in_model_dir(&self, name: &str, dir: &Path) -> Option<Result<Candidate, Error>> {
        let library = dir.join(self.keys.library_name(name));
        let named = NamedDir {
            name: name.to_owned(),
            path: dir.to_owned(),
            has_plugin: false,
            foreign: Vec::new(),
        };
        let adapted = || self.adapted(&named, &library, &library).map_err(|lacking| lacking.1);
        library.is_file().then(adapted)
    }

    fn adapted(
        &self,
        dir: &NamedDir,
        file: &Path,
        library: &Path,
    ) -> Result<Candidate, Box<(Candidate, Error)>> {
        let candidate = self.unchecked(dir, file, library);
        if self.library.is_file() {
            return Ok(candidate);
        }
        let (file, adapter) = (file.display(), self.library.display());
        let text = format!("backend '{file}': its adapter '{adapter}' does not exist");
        Err(Box::new((candidate, Error::unsupported(text))))
    }

    fn unchecked(&self, dir: &NamedDir, file: &Path, library: &Path) -> Candidate {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut settings = self.manifest.settings.clone();
        settings.insert(DIRECTORY.to_owned(), text(dir.path.parent().unwrap_or(&dir.path)));
        settings.insert(LIBRARY.to_owned(), text(library));
        let (adapter, name) = (self.name.clone(), dir.name.clone());
        let default_file = self.keys.default_files.get(&name).cloned();
        let adapted = Some(AdaptedLibrary { adapter, name, file: file.to_owned(), default_file });
        Candidate {
            file: PluginFile { library: self.library.clone(), adapted },
            name: dir.name.clone(),
            version: None,
            settings,
            warnings: self.manifest.warnings.clone(),
        }
    }
}

/// An adapted backend, or why there is none.
pub enum ScannedFile {
    Candidate(Candidate),
    /// The `plugin.toml` beside its file is malformed or unreadable.
    BadManifest(Candidate, Error),
    /// It lacks its adapter or another library.
    Unopenable(Candidate, Error),
}

/// What the adapters open in the directories, and libraries for which there is no adapter.
pub fn find_adapted_backends(adapters: &[Adapter], dirs: &[NamedDir]) -> Vec<ScannedFile> {
    let found = dirs.iter().filter_map(|dir| {
        let opened = adapters.iter().find_map(|adapter| adapter.candidate(dir, dirs));
        match opened {
            Some(Ok(candidate)) => Some(with_manifest(candidate, dir)),
            Some(Err(lacking)) => Some(ScannedFile::Unopenable(lacking.0, lacking.1)),
            None => without_adapter(dir),
        }
    });
    found.collect()
}

fn with_manifest(mut candidate: Candidate, dir: &NamedDir) -> ScannedFile {
    match read_manifest(&dir.path) {
        Ok(own) => {
            candidate.settings.extend(own.settings);
            candidate.warnings.extend(own.warnings);
            ScannedFile::Candidate(candidate)
        }
        Err(e) => ScannedFile::BadManifest(candidate, e),
    }
}

/// A library `libADAPTER_NAME.so` in the directory NAME, unless the directory has a plugin: then it
/// may be anything.
fn without_adapter(dir: &NamedDir) -> Option<ScannedFile> {
    let (adapter, path) = dir.foreign.first().filter(|_| !dir.has_plugin)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let text = format!(
        "{file} in '{}' needs the plugin '{adapter}', which is not installed",
        dir.path.display()
    );
    let candidate = Candidate::new(path.clone(), &dir.name);
    Some(ScannedFile::Unopenable(candidate, Error::unsupported(text)))
}
