//! The shared libraries that a file needs, directly or through others, and that the dynamic loader
//! would not find.

use lddtree::DependencyAnalyzer;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A shared library that the dynamic loader would not find.
#[derive(Serialize)]
pub struct MissingLibrary {
    pub name: String,
    /// The file itself or other libraries.
    pub needed_by: Vec<String>,
}

impl fmt::Display for MissingLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (needed by {})", self.name, self.needed_by.join(", "))
    }
}

/// Missing libraries by name. None for a file that is not a library.
pub fn missing_libraries(file: &Path) -> Vec<MissingLibrary> {
    let Ok(tree) = DependencyAnalyzer::new(PathBuf::from("/")).analyze(file) else {
        return Vec::new();
    };
    let own = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let found = |name: &String| tree.libraries.get(name).is_none_or(lddtree::Library::found);
    for name in tree.needed.iter().filter(|n| !found(n)) {
        missing.entry(name.clone()).or_default().push(own.clone());
    }
    for library in tree.libraries.values() {
        for name in library.needed.iter().filter(|n| !found(n)) {
            missing.entry(name.clone()).or_default().push(library.name.clone());
        }
    }
    let sorted = missing.into_iter().map(|(name, mut needed_by)| {
        needed_by.sort();
        needed_by.dedup();
        MissingLibrary { name, needed_by }
    });
    sorted.collect()
}
