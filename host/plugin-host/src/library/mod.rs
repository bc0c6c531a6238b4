//! Opens plugin files: `dlopen`, layout check, and the exchange of function tables through one of
//! two entry symbols.
//!
//! Libraries are never closed: a framework's threads, thread-locals and function pointers may
//! outlive its last model. So a file that replaces another one is loaded beside it.

pub mod conflicts;
pub mod refusal;
pub mod table;

use crate::crash_report;
use crate::crash_report::CrashSubject;
use crate::host_api;
use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use abi_stable::library::{
    AbiHeaderRef, IsLayoutChecked, LibHeader, ROOT_MODULE_LOADER_NAME_WITH_NUL,
};
use abi_stable::library::{LibraryError, RootModule};
use abi_stable::sabi_types::VersionNumber;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use trtserver_base::error::{Error, Result};
use trtserver_library_file::{FileStamp, LibraryFault, LinkedLibrary};
use trtserver_plugin_api::abi::backend::{BackendMain, BackendModuleRef, BackendTable};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR, BACKEND_MAIN};

pub use refusal::{LoadRefusal, Stage};
pub use table::check_info;

/// A library loaded in this process.
struct LoadedLibrary {
    path: PathBuf,
    stamp: FileStamp,
    /// The path that was passed to the loader.
    spelling: PathBuf,
    /// The loader's handle.
    handle: usize,
    /// Returned by its entry, which is called once.
    table: Option<&'static BackendTable>,
}

/// Process-wide, as the loader's list of libraries is: none is ever closed.
static LIBRARIES: OpenLibraries =
    OpenLibraries { loaded: Mutex::new(Vec::new()), linked: Mutex::new(Vec::new()) };

struct OpenLibraries {
    /// Every library ever opened. Locked during loads only; initialisers of a library run under the
    /// lock.
    loaded: Mutex<Vec<LoadedLibrary>>,
    /// With their private dependencies, without self-contained ones.
    linked: Mutex<Vec<LinkedLibrary>>,
}

/// Opens the library with the host's table, once per file. `stamp` is from an earlier check; the
/// file must not have changed since.
///
/// # Errors
/// Texts name the file, the interface that it was built for, and this host's.
pub fn open_same(path: &Path, stamp: &FileStamp) -> Result<&'static BackendTable> {
    load_library(path, host_api::table(), Some(stamp))
        .map_err(|refusal| refusal_error(path, refusal.why))
}

/// Opens the library with another host table, which must be static.
pub fn enter_library(
    path: &Path,
    host: &'static HostTable,
) -> Result<&'static BackendTable, LoadRefusal> {
    load_library(path, host, None)
}

/// Refuses a file that must not be given to the loader.
///
/// # Errors
/// The rest of a sentence about the file.
pub fn check_file(path: &Path) -> std::result::Result<(), String> {
    trtserver_library_file::check_library(path).map_err(|fault| match fault {
        LibraryFault::Truncated { .. } => format!("{fault}; it is tried again when it has changed"),
        LibraryFault::Unreadable(_) => fault.to_string(),
        _ => format!("not a loadable library: {fault}"),
    })
}

/// The error about a backend's file, from the rest of the sentence.
pub fn refusal_error(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::internal(format!("backend '{}': {why}", path.display()))
}

fn load_library(
    path: &Path,
    host: &'static HostTable,
    expected: Option<&FileStamp>,
) -> Result<&'static BackendTable, LoadRefusal> {
    let at_load = LoadRefusal::at(Stage::Load);
    let fail = |why: &str| Err(at_load(why.to_owned()));
    let mut loaded = LIBRARIES.loaded.lock();
    // The library of a file that was removed since is still loaded.
    if let Some(known) = loaded.iter().find(|l| expected == Some(&l.stamp))
        && let Some(table) = known.table
    {
        return Ok(table);
    }
    let stamp_of =
        || FileStamp::read(path).map_err(|e| at_load(format!("not a loadable library: {e}")));
    let stamp = stamp_of()?;
    if expected.is_some_and(|expected| *expected != stamp) {
        return fail("it was replaced by another file, which models loaded from now on can use");
    }
    if let Some(known) = loaded.iter().find(|l| l.stamp == stamp)
        && let Some(table) = known.table
    {
        return Ok(table);
    }
    check_file(path).map_err(&at_load)?;
    let linked = conflicts::check_conflicts(path).map_err(&at_load)?;
    let known = loaded.iter().find(|l| l.stamp == stamp).map(|l| l.spelling.clone());
    let spelling =
        known.unwrap_or_else(|| respelled(path, loaded.iter().filter(|l| l.path == path).count()));
    let subject = CrashSubject::new(format!("the library {}", path.display()));
    let _entered = subject.enter(&crash_report::LOAD);
    // SAFETY: loading runs the library's initialisers; the operator chose to run this code.
    let library = unsafe { Library::open(Some(&spelling), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|e| at_load(format!("not a loadable library: {}", source_text(&e))))?;
    conflicts::note_opened(linked);
    let main = entry(&library).map_err(LoadRefusal::at(Stage::Entry));
    // Never closed, also on errors below: its initialisers may have started threads.
    let handle = library.into_raw() as usize;
    let already_loaded = loaded.iter().any(|l| l.handle == handle && l.stamp != stamp);
    if already_loaded {
        return fail(
            "it was written to while it was loaded, which also damages the loaded library: replace libraries by \
                    renaming (mv, install), never by writing into them. To use this file, move a copy of it over it",
        );
    }
    let after = stamp_of()?;
    if !loaded.iter().any(|l| l.handle == handle) {
        loaded.push(LoadedLibrary {
            path: path.to_owned(),
            stamp: after,
            spelling,
            handle,
            table: None,
        });
    }
    if after != stamp {
        return fail("it was changed while it was opened; it is tried again");
    }
    let main = main?;
    // SAFETY: the symbol is the documented entry symbol; the host table is valid for the life of
    // the process.
    let table = unsafe { table::check_table(main(host), host) }?;
    if let Some(known) = loaded.iter_mut().find(|l| l.handle == handle) {
        known.table = Some(table);
    }
    Ok(table)
}

/// The path in a spelling that is new to the loader. The loader compares path strings before
/// inodes, and would return the old library for a new file of the same path; each `/.` more is
/// another string for the same file. A path in /proc or a private copy would break `$ORIGIN`, and
/// the backend directory may be read-only.
fn respelled(path: &Path, times: usize) -> PathBuf {
    let (Some(dir), Some(file)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    let mut spelling = dir.as_os_str().to_owned();
    spelling.push("/.".repeat(times));
    spelling.push("/");
    spelling.push(file);
    spelling.into()
}

/// The entry from the abi_stable root module, which checks layouts, else from the C symbol.
fn entry(library: &Library) -> Result<BackendMain, String> {
    // SAFETY: the symbol, if present, is abi_stable's header: the name is mangled to be unique.
    let header =
        unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes()) };
    if let Ok(header) = header {
        // Built with abi_stable: its check is final. The C symbol of the same file would bypass it.
        let header = header.upgrade().map_err(|e| layout_error(&e))?;
        // Package version = interface version. A clear message is better than a layout diff of two
        // versions.
        if let Ok(theirs) = VersionNumber::new(header.version_strings()) {
            table::check_version(theirs.major, theirs.minor)?;
        }
        let module = checked_module(header).map_err(|e| layout_error(&e))?;
        return Ok(module.main());
    }
    // SAFETY: the symbol has this type by the interface's definition.
    let symbol = unsafe { library.get::<BackendMain>(BACKEND_MAIN.as_bytes()) };
    match symbol {
        Ok(symbol) => Ok(*symbol),
        Err(_) => Err(format!(
            "not a trtserver backend: it exports neither an abi_stable root module nor the symbol '{BACKEND_MAIN}'. \
             A backend that was built for another server is opened through an adapter, from NAME/ in a backend directory: \
             `trtserver plugin list --backend-directory=DIR` names it"
        )),
    }
}

/// abi_stable accepts only plugins that are as new as the host or newer; for an older one of the
/// same major version the check runs with the roles swapped.
fn checked_module(header: &'static LibHeader) -> Result<BackendModuleRef, LibraryError> {
    let host_version = VersionNumber::new(BackendModuleRef::VERSION_STRINGS)?;
    let theirs = VersionNumber::new(header.version_strings())?;
    let older = host_version.major == theirs.major
        && (theirs.minor, theirs.patch) < (host_version.minor, host_version.patch);
    if !older {
        return header.init_root_module::<BackendModuleRef>();
    }
    if let IsLayoutChecked::Yes(layout) = header.root_mod_consts().layout() {
        check_layout_compatibility(layout, <BackendModuleRef as StableAbi>::LAYOUT).map_err(
            |e| LibraryError::AbiInstability(abi_stable::std_types::RBoxError::from_fmt(&e)),
        )?;
    }
    // SAFETY: the layouts were compared above, in the direction that allows appended fields.
    unsafe { header.init_root_module_with_unchecked_layout::<BackendModuleRef>() }
}

/// The reasons from abi_stable's report of a thousand lines; the full report goes to the debug log.
fn layout_error(error: &LibraryError) -> String {
    let full = error.to_string();
    tracing::debug!("{full}");
    let mut reasons: Vec<&str> =
        full.lines().map(str::trim).filter(|l| l.starts_with("Error:")).collect();
    reasons.dedup();
    reasons.truncate(3);
    let reasons = if reasons.is_empty() {
        full.lines().map(str::trim).filter(|l| !l.is_empty()).take(3).collect::<Vec<_>>().join(" ")
    } else {
        reasons.join(" ")
    };
    format!(
        "built for another plugin interface; this host offers {ABI_MAJOR}.{ABI_MINOR}. Rebuild it against \
         that version. Details: {reasons}"
    )
}

/// The loader's own message, which libloading keeps in the error's source.
fn source_text(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
