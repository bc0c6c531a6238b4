//! Opening a backend's file through one of its two doors, and words for everything that can be wrong.
//!
//! Libraries are never closed: threads, thread-locals and function pointers of a framework outlive any
//! bookkeeping of ours. So a file that takes the place of another one is loaded beside it.

pub mod file; // a file before it is opened
pub mod refusal; // why a file is no backend
pub mod table; // what a plugin hands over, checked

use crate::error::{Error, Result};
use crate::plugin::host_api;
use crate::sync::Mutex;
use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use abi_stable::library::{
    AbiHeaderRef, IsLayoutChecked, LibHeader, ROOT_MODULE_LOADER_NAME_WITH_NUL,
};
use abi_stable::library::{LibraryError, RootModule};
use abi_stable::sabi_types::VersionNumber;
use file::{Stamp, check_whole};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::{Path, PathBuf};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::plugin::{PluginMain, PluginModuleRef, PluginTable};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR, PLUGIN_MAIN};

pub use refusal::{Refusal, Stage};
pub use table::check_about;

/// A library of this process.
struct Loaded {
    path: PathBuf,
    stamp: Stamp,
    /// What the loader was given.
    spelling: PathBuf,
    /// The loader's name for it.
    handle: usize,
    /// From its entry, which is called once.
    table: Option<&'static PluginTable>,
}

/// Every library that was ever opened. Taken for loads only; whoever holds it may run initialisers of a library.
static LOADED: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// Opens the library and swaps tables with it; a file that was opened before is not asked again. It was looked at
/// before and must still be that file.
///
/// # Errors
/// Texts name the file and say what it was built for and what this host offers.
pub fn open_same(path: &Path, stamp: &Stamp) -> Result<&'static PluginTable> {
    load(path, host_api::address(), Some(stamp)).map_err(|refusal| refused(path, refusal.why))
}

/// Opens with a table of the caller's choice, which lives for ever.
pub fn enter(path: &Path, host: *const HostTable) -> Result<&'static PluginTable, Refusal> {
    load(path, host, None)
}

/// The error about a backend's file, from the rest of the sentence.
pub fn refused(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::internal(format!("backend '{}': {why}", path.display()))
}

fn load(
    path: &Path,
    host: *const HostTable,
    expected: Option<&Stamp>,
) -> Result<&'static PluginTable, Refusal> {
    let at_load = Refusal::at(Stage::Load);
    let fail = |why: &str| Err(at_load(why.to_owned()));
    let mut loaded = LOADED.lock();
    // Of a file that was loaded here and has gone since, the library is still there.
    if let Some(known) = loaded.iter().find(|l| expected == Some(&l.stamp))
        && let Some(table) = known.table
    {
        return Ok(table);
    }
    let stamp_of = || Stamp::of(path).map_err(|e| at_load(format!("not a loadable library: {e}")));
    let stamp = stamp_of()?;
    if expected.is_some_and(|expected| *expected != stamp) {
        return fail("another file has taken its place; models loaded from now on may use that");
    }
    if let Some(known) = loaded.iter().find(|l| l.stamp == stamp)
        && let Some(table) = known.table
    {
        return Ok(table);
    }
    check_whole(path).map_err(&at_load)?;
    let known = loaded.iter().find(|l| l.stamp == stamp).map(|l| l.spelling.clone());
    let spelling =
        known.unwrap_or_else(|| respelled(path, loaded.iter().filter(|l| l.path == path).count()));
    // SAFETY: loading runs the library's initialisers; backends are code that the operator chose to run.
    let library = unsafe { Library::open(Some(&spelling), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|e| at_load(format!("not a loadable library: {}", source_text(&e))))?;
    let main = entry(&library).map_err(Refusal::at(Stage::Door));
    // Never closed, whatever follows: its code may have left threads behind.
    let handle = library.into_raw() as usize;
    let loader_knew = loaded.iter().any(|l| l.handle == handle && l.stamp != stamp);
    if loader_knew {
        return fail(
            "it was written to while it was loaded, which also damages what is loaded: replace libraries by \
                    renaming (mv, install), never by writing into them. To use this file, move a copy of it into \
                    its place",
        );
    }
    let after = stamp_of()?;
    if !loaded.iter().any(|l| l.handle == handle) {
        loaded.push(Loaded { path: path.to_owned(), stamp: after, spelling, handle, table: None });
    }
    if after != stamp {
        return fail("it was changed while it was opened; it is looked at again");
    }
    // SAFETY: the symbol is the documented entry; the host table lives for ever.
    let table = table::checked(unsafe { main?(host) })?;
    if let Some(known) = loaded.iter_mut().find(|l| l.handle == handle) {
        known.table = Some(table);
    }
    Ok(table)
}

/// The path, spelled so that the loader has not heard of it. It compares the names of its libraries before it looks at
/// files, and would give the old library again for a new file; with `/.` more it is another name for the same file.
/// A name in /proc or a private copy would do too, but the library would no longer find what lies beside it
/// (`$ORIGIN`), and a backend directory may be read-only.
fn respelled(path: &Path, times: usize) -> PathBuf {
    let (Some(dir), Some(file)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    let mut spelling = dir.as_os_str().to_owned();
    spelling.push("/.".repeat(times));
    spelling.push("/");
    spelling.push(file);
    spelling.into()
}

/// The entry through the layout-checked door, else the C symbol.
fn entry(library: &Library) -> Result<PluginMain, String> {
    // SAFETY: the symbol, if present, is abi_stable's header by its unmistakable name.
    let header =
        unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes()) };
    if let Ok(header) = header {
        // Built with abi_stable: its verdict is final. The C door of the same file would lead past it.
        let header = header.upgrade().map_err(|e| layout_error(&e))?;
        // The package has the interface's numbers. Layouts of another version would be compared to no purpose.
        if let Ok(theirs) = VersionNumber::new(header.version_strings()) {
            table::check_version(theirs.major, theirs.minor)?;
        }
        let module = checked_module(header).map_err(|e| layout_error(&e))?;
        return Ok(module.main());
    }
    // SAFETY: the symbol has this type by the interface's definition.
    let symbol = unsafe { library.get::<PluginMain>(PLUGIN_MAIN.as_bytes()) };
    match symbol {
        Ok(symbol) => Ok(*symbol),
        Err(_) => Err(format!(
            "not a trtserver backend: it exports neither an abi_stable root module nor the symbol '{PLUGIN_MAIN}'"
        )),
    }
}

/// abi_stable accepts a plugin that is newer than the host only; for an older one of the same major
/// version the check runs with the roles swapped.
fn checked_module(header: &'static LibHeader) -> Result<PluginModuleRef, LibraryError> {
    let mine = VersionNumber::new(PluginModuleRef::VERSION_STRINGS)?;
    let theirs = VersionNumber::new(header.version_strings())?;
    let older =
        mine.major == theirs.major && (theirs.minor, theirs.patch) < (mine.minor, mine.patch);
    if !older {
        return header.init_root_module::<PluginModuleRef>();
    }
    if let IsLayoutChecked::Yes(layout) = header.root_mod_consts().layout() {
        check_layout_compatibility(layout, <PluginModuleRef as StableAbi>::LAYOUT).map_err(
            |e| LibraryError::AbiInstability(abi_stable::std_types::RBoxError::from_fmt(&e)),
        )?;
    }
    // SAFETY: the layouts were compared above, in the direction that allows appended fields.
    unsafe { header.init_root_module_with_unchecked_layout::<PluginModuleRef>() }
}

/// abi_stable's reports run to a thousand lines; an operator needs the reasons, the rest goes to the debug log.
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

/// libloading's own text hides the loader's reason in the source.
fn source_text(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
