//! Where the library of a backend is: version directory, model directory, directory of the backend.

use crate::fault::{Result, TritonFault};
use std::path::{Path, PathBuf};

/// File of a backend written in Python.
pub const MODEL_PY: &str = "model.py";

/// A backend's library, and the directory that it is told as its own.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct LocatedLibrary {
    pub library: PathBuf,
    pub dir: PathBuf,
}

/// Where a model's backend may be.
pub struct Search<'a> {
    /// Name of the backend.
    pub name: &'a str,
    /// Name of the model, if there is one.
    pub model: &'a str,
    /// `runtime` of the configuration; may be empty.
    pub runtime: &'a str,
    /// Version directory and model directory, if there is a model.
    pub of_model: Option<[&'a Path; 2]>,
    /// `<backend directory>/<name>`
    pub dir: &'a Path,
    /// A library of the backend "python" in another backend directory.
    pub fallback: Option<&'a Path>,
}

impl Search<'_> {
    /// # Errors
    /// The files that were looked for.
    pub fn run(&self) -> Result<LocatedLibrary> {
        let file = match self.runtime {
            "" => format!("libtriton_{}.so", self.name),
            runtime if runtime.contains('/') => {
                return Err(TritonFault::invalid(format_args!(
                    "backend library name '{runtime}' escapes backend directory '{}', for model '{}', check model config \
                     runtime field: it must be the name of a file, which is looked for in the directories of version, \
                     model and backend",
                    self.dir.display(),
                    self.model
                )));
            }
            runtime => runtime.to_owned(),
        };
        let mut tried = Vec::new();
        if file != MODEL_PY {
            let of_model = self.of_model.into_iter().flatten();
            for dir in of_model.chain([self.dir]) {
                let library = dir.join(&file);
                if library.is_file() {
                    return Ok(LocatedLibrary { library, dir: dir.to_owned() });
                }
                tried.push(library);
            }
        }
        if self.runtime.is_empty() || file == MODEL_PY {
            let script = self.dir.join(MODEL_PY);
            if script.is_file() {
                return self.python_based(&script);
            }
            tried.push(script);
        }
        Err(self.not_found(&file, &tried))
    }

    /// With the texts of Triton.
    fn not_found(&self, file: &str, tried: &[PathBuf]) -> TritonFault {
        let Self { name, model, runtime, .. } = self;
        let tried: Vec<_> = tried.iter().map(|path| format!("'{}'", path.display())).collect();
        let tried = tried.join(" ");
        match (runtime.is_empty(), model.is_empty()) {
            (true, true) => {
                TritonFault::not_found(format_args!("backend '{name}' has none of {tried}"))
            }
            (true, false) => TritonFault::not_found(format_args!(
                "unable to find backend library for backend '{name}', try specifying runtime on the model configuration. \
                 Model '{model}', searched: {tried}"
            )),
            (false, _) => TritonFault::not_found(format_args!(
                "unable to find backend library '{file}' for model '{model}', searched: {tried}"
            )),
        }
    }

    /// The library of the backend "python" beside a backend written in Python.
    fn python_based(&self, script: &Path) -> Result<LocatedLibrary> {
        let parent = self.dir.parent().unwrap_or(Path::new("/"));
        let library = parent.join("python").join("libtriton_python.so");
        let mut found = [Some(library.as_path()), self.fallback].into_iter().flatten();
        if let Some(library) = found.find(|library| library.is_file()) {
            return Ok(LocatedLibrary { library: library.to_owned(), dir: self.dir.to_owned() });
        }
        Err(TritonFault::not_found(format_args!(
            "backend '{}' is written in Python ({}), and the backend 'python' that runs it is not installed: there is no {}",
            self.name,
            script.display(),
            library.display()
        )))
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
