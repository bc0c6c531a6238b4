//! Where libraries of TensorRT are searched: names for each major version, directories, the dynamic
//! loader.

use std::path::{Path, PathBuf};

/// Setting with the directories of the libraries, separated by `:`. Then no others are searched.
pub const SETTING: &str = "library-directory";

/// Names without `.so.MAJOR`, best first: the full library, the one that runs version-compatible
/// plans, and the one that loads the latter from the plan.
pub const STEMS: [&str; 3] = ["libnvinfer", "libnvinfer_lean", "libnvinfer_dispatch"];

/// Directories, and whether the dynamic loader is asked after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryPlaces {
    pub directories: Vec<PathBuf>,
    pub loader: bool,
}

impl LibraryPlaces {
    /// `beside`: directories that belong to the plugin.
    pub fn new(setting: Option<&str>, beside: Vec<PathBuf>) -> LibraryPlaces {
        match setting.filter(|setting| !setting.is_empty()) {
            Some(setting) => {
                let directories = setting.split(':').filter(|part| !part.is_empty());
                LibraryPlaces {
                    directories: directories.map(PathBuf::from).collect(),
                    loader: false,
                }
            }
            None => LibraryPlaces { directories: beside, loader: true },
        }
    }

    /// Files to be tried for a major, best first.
    pub fn candidates(&self, major: u32) -> Vec<PathBuf> {
        self.files(&STEMS.map(|stem| format!("{stem}.so.{major}")))
    }

    /// Files whose names begin with one of `names` and go on with nothing or a further version,
    /// best first; last, the names alone, for the dynamic loader.
    pub fn files(&self, names: &[String]) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for name in names {
            for directory in &self.directories {
                let exact = directory.join(name);
                match exact.exists() {
                    true => all.push(exact),
                    false => all.extend(with_version(directory, name)),
                }
            }
            if self.loader {
                all.push(PathBuf::from(name));
            }
        }
        all
    }

    /// Majors of the libraries that lie in the directories, newest first.
    pub fn majors(&self, known: &[u32]) -> Vec<u32> {
        let mut found: Vec<u32> = known.to_vec();
        found.retain(|major| self.candidates(*major).iter().any(|path| path.exists()));
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }

    /// For messages: where was searched.
    pub fn text(&self) -> String {
        let mut all: Vec<String> =
            self.directories.iter().map(|directory| directory.display().to_string()).collect();
        if self.loader {
            all.push("the search path of the dynamic loader".to_owned());
        }
        all.join(", ")
    }
}

/// `libnvinfer.so.10.16.1` for `libnvinfer.so.10`; several in descending order of their names.
fn with_version(directory: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let further = |found: &String| {
        found
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|rest| rest.split('.').all(|part| part.parse::<u32>().is_ok()))
    };
    let mut found: Vec<String> = names.filter(further).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|name| directory.join(name)).collect()
}

#[cfg(test)]
#[path = "library_places_tests.rs"]
mod tests;
