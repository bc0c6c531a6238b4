//! Opens the library of a backend: once per file, with local names, and never closes it.

use super::carrier;
use super::entries::BackendEntries;
use crate::exports::names;
use crate::fault::{Result, TritonFault};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use trtserver_library_file::{DynamicSection, FileStamp};

struct KnownLibrary {
    path: PathBuf,
    stamp: FileStamp,
    entries: &'static BackendEntries,
}

static KNOWN: Mutex<Vec<KnownLibrary>> = Mutex::new(Vec::new());

/// The dynamic loader's message; the error itself only names the function that failed.
pub fn loader_message(error: &libloading::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(|| error.to_string(), |source| source.to_string())
}

/// The entry points of the library in that file, which is opened unless it is open.
///
/// # Errors
/// The file, with the reason: another machine, an unknown import, a missing entry point.
pub fn open_library(path: &Path) -> Result<&'static BackendEntries> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let stamp = FileStamp::read(path)
        .map_err(|e| TritonFault::not_found(format_args!("{}: {e}", path.display())))?;
    if let Some(found) = known.iter().find(|k| k.stamp == stamp) {
        return Ok(found.entries);
    }
    let entries = load_library(path, &known).map_err(|f| f.context(path.display()))?;
    known.push(KnownLibrary { path: path.to_owned(), stamp, entries });
    Ok(entries)
}

fn load_library(path: &Path, known: &[KnownLibrary]) -> Result<&'static BackendEntries> {
    if known.iter().any(|k| k.path == path) {
        return Err(TritonFault::unavailable(
            "it was replaced after it had been opened; the server keeps libraries open, so restart it to use the new file",
        ));
    }
    let library = open_file(path)?;
    let entries = BackendEntries::from_library(&library)?;
    std::mem::forget(library);
    Ok(Box::leak(Box::new(entries)))
}

/// Opens a library that calls the functions of Triton.
///
/// # Errors
/// It was made for another machine, or has an unknown import.
pub fn open_file(path: &Path) -> Result<Library> {
    trtserver_library_file::check_library(path).map_err(TritonFault::not_found)?;
    let dynamic = DynamicSection::read(path).map_err(TritonFault::not_found)?;
    for needed in dynamic.needed.iter().filter(|needed| carrier::is_renamed(needed)) {
        carrier::open_carrier(needed)?;
    }
    // SAFETY: runs the initialisers of a library that the operator has installed as a backend, or
    // with a model.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    library.map_err(|e| {
        let text = loader_message(&e);
        let why = undefined_reason(&text, &dynamic.needed);
        TritonFault::not_found(format_args!("{text}{why}"))
    })
}

/// Why the loader did not find a function of Triton, as the end of its message.
fn undefined_reason(message: &str, needed: &[String]) -> String {
    let symbol = message.split_once("undefined symbol: ").map(|(_, symbol)| symbol);
    let symbol = symbol.and_then(|symbol| symbol.split([' ', ',', ';', ':']).next());
    let Some(symbol) = symbol.filter(|symbol| symbol.starts_with("TRITON")) else {
        return String::new();
    };
    let offered = [names::BACKEND, names::SERVER, names::REPO_AGENT, names::CACHE];
    if !offered.iter().any(|names| names.contains(&symbol)) {
        return "; it was built for a newer interface than the backend API 1.19 that this server offers"
            .to_owned();
    }
    // Triton's own program offers its functions to all libraries, this server to those that ask.
    format!(
        "; this server offers that function, but the library is linked without {}, only with: {}. Link it with \
         -ltritonserver, or add the dependency: patchelf --add-needed {0} FILE",
        carrier::SONAME,
        if needed.is_empty() { "nothing".to_owned() } else { needed.join(", ") }
    )
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
