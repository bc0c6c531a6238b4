//! Custom libraries: opened once each, never closed.
//!
//! Opened with lazy and local binding, as TRTIS did: missing symbols that are never used do not
//! matter, and two libraries may define the same names. Models that name the same file share its
//! image, and so its globals. A file that was replaced since is loaded as a second image; models
//! that use the old image keep it.

use crate::custom_h::{
    ErrorString, Execute, ExecuteA, ExecuteB, ExecuteV2, Finalize, Initialize, InitializeA,
    InitializeB, InitializeC, Version,
};
use crate::generation::Generation;
use libloading::os::unix::{Library as Image, RTLD_LAZY, RTLD_LOCAL};
use std::ffi::{OsString, c_void};
use std::mem::transmute;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use trtserver_library_file::FileStamp;
use trtserver_plugin_api::author::Error;

/// An open library.
pub struct CustomLibrary {
    image: Image,
    /// The result of `CustomVersion`, if exported.
    pub version: Option<u32>,
    /// What trials have found, if nothing says the generation.
    pub tried: OnceLock<Generation>,
}

/// The functions of a library, as its generation declares them.
pub struct LibraryEntries {
    pub initialize: Initialize,
    pub finalize: Finalize,
    pub error_string: ErrorString,
    pub execute: Execute,
}

struct KnownLibrary {
    path: PathBuf,
    stamp: FileStamp,
    library: &'static CustomLibrary,
}

static KNOWN: Mutex<Vec<KnownLibrary>> = Mutex::new(Vec::new());

fn cannot_open(reason: impl std::fmt::Display) -> Error {
    Error::not_found(format_args!("unable to load custom library: {reason}"))
}

/// The dynamic loader's message; the error itself only names the function that failed.
pub fn loader_message(error: &libloading::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(|| error.to_string(), |source| source.to_string())
}

/// The library in that file, opened unless it already is.
pub fn open_library(path: &Path) -> Result<&'static CustomLibrary, Error> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let stamp =
        FileStamp::read(path).map_err(|e| cannot_open(format_args!("{}: {e}", path.display())))?;
    let same_path = |k: &&KnownLibrary| k.path == path;
    if let Some(found) = known.iter().filter(same_path).find(|k| k.stamp == stamp) {
        return Ok(found.library);
    }
    if known.iter().any(|k| k.stamp != stamp && k.stamp.same_inode(&stamp)) {
        return Err(cannot_open(format_args!(
            "{} was overwritten while in use; libraries are never closed, so replace the file by \
             renaming the new one over it, or restart the server",
            path.display()
        )));
    }
    trtserver_library_file::check_library(path)
        .map_err(|fault| cannot_open(format_args!("{}: {fault}", path.display())))?;
    // The loader returns the old image for a known path, even if the file was replaced.
    let spelled = spell(path, known.iter().filter(same_path).count());
    // SAFETY: the operator placed the library in the model repository; its initialisers are trusted
    // as the rest of it is.
    let image = unsafe { Image::open(Some(&spelled), RTLD_LAZY | RTLD_LOCAL) };
    let image = image.map_err(|e| cannot_open(loader_message(&e)))?;
    // SAFETY: the symbol has this type in every release that has it, and takes nothing.
    let version = unsafe { image.get::<Version>(b"CustomVersion\0").ok().map(|f| f()) };
    // Never closed: its threads and registered callbacks may outlive every model.
    let library: &'static CustomLibrary =
        Box::leak(Box::new(CustomLibrary { image, version, tried: OnceLock::new() }));
    known.push(KnownLibrary { path: path.to_owned(), stamp, library });
    Ok(library)
}

/// The same path with redundant `/.` components.
fn spell(path: &Path, detours: usize) -> PathBuf {
    let (Some(folder), Some(file)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    let mut spelled = folder.as_os_str().as_bytes().to_vec();
    (0..detours).for_each(|_| spelled.extend_from_slice(b"/."));
    spelled.push(b'/');
    spelled.extend_from_slice(file.as_bytes());
    OsString::from_vec(spelled).into()
}

impl CustomLibrary {
    /// Looks up the required symbols of the generation; the error names all that are missing.
    pub fn entries(&self, generation: Generation) -> Result<LibraryEntries, Error> {
        let execute =
            if generation == Generation::V1_6 { "CustomExecuteV2" } else { "CustomExecute" };
        let names = ["CustomInitialize", "CustomFinalize", "CustomErrorString", execute];
        let found = names.map(|name| self.address(name));
        let missing = names.iter().zip(&found).filter_map(|(n, f)| Some((n, f.as_ref().err()?)));
        let missing: Vec<_> = missing.collect();
        if let Some(((name, reason), others)) = missing.split_first() {
            let others: String = others.iter().map(|(name, _)| format!(", '{name}'")).collect();
            let also = if others.is_empty() {
                others
            } else {
                format!("; missing as well: {}", &others[2..])
            };
            return Err(Error::not_found(format_args!(
                "unable to find '{name}' entrypoint in custom library: {reason}{also}"
            )));
        }
        let [Ok(initialize), Ok(finalize), Ok(error_string), Ok(execute)] = found else {
            return Err(Error::internal("a required symbol is missing"));
        };
        // SAFETY: addresses of functions, whose types are those of the generation that the
        // configuration or the library itself names. Nothing else can verify it.
        unsafe {
            Ok(LibraryEntries {
                initialize: match generation {
                    Generation::V0_10 => {
                        Initialize::A(transmute::<*mut c_void, InitializeA>(initialize))
                    }
                    Generation::V0_11 | Generation::V0_12 => {
                        Initialize::B(transmute::<*mut c_void, InitializeB>(initialize))
                    }
                    Generation::V1_0 | Generation::V1_6 => {
                        Initialize::C(transmute::<*mut c_void, InitializeC>(initialize))
                    }
                },
                finalize: transmute::<*mut c_void, Finalize>(finalize),
                error_string: transmute::<*mut c_void, ErrorString>(error_string),
                execute: match generation {
                    Generation::V0_10 => Execute::A(transmute::<*mut c_void, ExecuteA>(execute)),
                    Generation::V0_11 | Generation::V0_12 | Generation::V1_0 => {
                        Execute::B(transmute::<*mut c_void, ExecuteB>(execute))
                    }
                    Generation::V1_6 => Execute::V2(transmute::<*mut c_void, ExecuteV2>(execute)),
                },
            })
        }
    }

    fn address(&self, name: &str) -> Result<*mut c_void, String> {
        let with_end = [name.as_bytes(), &[0]].concat();
        // SAFETY: the address is not used here.
        let symbol = unsafe { self.image.get::<*mut c_void>(&*with_end) };
        let address = symbol.map_err(|e| loader_message(&e))?.as_raw_ptr();
        if address.is_null() { Err("its address is null".to_owned()) } else { Ok(address) }
    }
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
