//! Opening a backend's file: its two doors, version check, and words for everything that can be wrong.
//!
//! Libraries are never closed: threads, thread-locals and function pointers of a framework outlive any
//! bookkeeping of ours.

use super::host_calls;
use super::text;
use crate::error::{Error, Result};
use crate::request::buffer::ALIGN;
use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use abi_stable::library::{
    AbiHeaderRef, IsLayoutChecked, LibHeader, ROOT_MODULE_LOADER_NAME_WITH_NUL,
};
use abi_stable::library::{LibraryError, RootModule};
use abi_stable::sabi_types::VersionNumber;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::Path;
use trtserver_plugin_api::abi::describe::About;
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::plugin::{PluginMain, PluginModuleRef, PluginTable};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR, PLUGIN_MAIN};

/// How far an opening came when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The dynamic loader refused the file.
    Load,
    /// It is a library without a door for this host.
    Door,
    /// Numbers and size of the table that it gave.
    Interface,
    /// Entries that every backend has.
    Entries,
    /// What it says of itself.
    Description,
}

/// Why a file is no backend for this host.
#[derive(Debug)]
pub struct Refusal {
    pub stage: Stage,
    /// The interface that it was built for, as far as it said.
    pub abi: Option<(u32, u32)>,
    pub why: String,
}

impl Refusal {
    fn at(stage: Stage) -> impl Fn(String) -> Self {
        move |why| Self { stage, abi: None, why }
    }
}

/// Opens the library and swaps tables with it.
///
/// # Errors
/// Texts name the file and say what it was built for and what this host offers.
pub fn open(path: &Path) -> Result<&'static PluginTable> {
    enter(path, host_calls::table()).map_err(|refusal| {
        Error::internal(format!("backend '{}': {}", path.display(), refusal.why))
    })
}

/// The same with a table of the caller's choice.
pub fn enter(path: &Path, host: &'static HostTable) -> Result<&'static PluginTable, Refusal> {
    // SAFETY: loading runs the library's initialisers; backends are code that the operator chose to run.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| {
        Refusal::at(Stage::Load)(format!("not a loadable library: {}", source_text(&e)))
    })?;
    let main = entry(&library).map_err(Refusal::at(Stage::Door))?;
    // Never closed, whatever follows: its code may have left threads behind.
    std::mem::forget(library);
    // SAFETY: the symbol is the documented entry; the host table lives for ever.
    let table = unsafe { main(host) };
    check_table(table)
}

/// The entry through the layout-checked door, else the C symbol.
fn entry(library: &Library) -> Result<PluginMain, String> {
    // SAFETY: the symbol, if present, is abi_stable's header by its unmistakable name.
    let header =
        unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes()) };
    if let Ok(header) = header {
        // Built with abi_stable: its verdict is final. The C door of the same file would lead past it.
        let header = header.upgrade().map_err(|e| layout_error(&e))?;
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

fn check_table(table: *const PluginTable) -> Result<&'static PluginTable, Refusal> {
    // Null is how a plugin refuses the host without a table.
    // SAFETY: otherwise it is the plugin's static table, which starts with the words checked below.
    let Some(head) = (unsafe { table.cast::<Head>().as_ref() }) else {
        let why = "its entry returned no table: the backend refuses this host";
        return Err(Refusal::at(Stage::Interface)(why.into()));
    };
    let abi = Some((head.major, head.minor));
    let fail = |stage| move |why| Refusal { stage, abi, why };
    check_head(head).map_err(fail(Stage::Interface))?;
    if let Some(missing) = head.required.iter().position(|entry| *entry == 0) {
        let name = ["describe", "plugin_open", "plugin_close"][missing];
        return Err(fail(Stage::Entries)(format!("required entry '{name}' is missing")));
    }
    check_required(table).map_err(fail(Stage::Entries))?;
    // SAFETY: size and version were checked, and the required entries are not null.
    let table = unsafe { &*table };
    // SAFETY: describe(null) is allowed from the start by the interface.
    let about = unsafe { (table.describe)(std::ptr::null_mut()) };
    check_about(about).map_err(fail(Stage::Description))?;
    Ok(table)
}

fn check_head(head: &Head) -> Result<(), String> {
    let (major, minor) = (head.major, head.minor);
    if major != ABI_MAJOR || minor > ABI_MINOR {
        return Err(format!(
            "built for plugin interface {major}.{minor}, this host offers {ABI_MAJOR}.{ABI_MINOR}: the \
             major number must be equal and the backend's minor number at most the host's"
        ));
    }
    let wanted = std::mem::size_of::<PluginTable>() as u64;
    if head.size < wanted {
        return Err(format!(
            "its table has {} bytes, interface {major}.{minor} has {wanted}: the file is damaged or was \
             built from a header that was changed",
            head.size
        ));
    }
    Ok(())
}

/// The head of a table as plain numbers, so that nothing is believed before it was checked.
#[repr(C)]
struct Head {
    size: u64,
    major: u32,
    minor: u32,
    required: [usize; 3],
}

fn check_required(table: *const PluginTable) -> Result<(), String> {
    use std::mem::offset_of;
    let entries = [
        ("model_open", offset_of!(PluginTable, model_open)),
        ("model_close", offset_of!(PluginTable, model_close)),
        ("instance_open", offset_of!(PluginTable, instance_open)),
        ("execute", offset_of!(PluginTable, execute)),
        ("instance_close", offset_of!(PluginTable, instance_close)),
    ];
    for (name, offset) in entries {
        // SAFETY: the table is at least as large as ours; an entry is one pointer, read as a number.
        if unsafe { table.cast::<u8>().add(offset).cast::<usize>().read() } == 0 {
            return Err(format!("required entry '{name}' is missing"));
        }
    }
    Ok(())
}

/// What a description must be to be believed.
pub fn check_about(about: *const About) -> Result<(), String> {
    // SAFETY: describe returns null or a static description.
    let Some(about) = (unsafe { about.as_ref() }) else {
        return Err("describe returned nothing".into());
    };
    if about.size < std::mem::size_of::<About>() as u64 {
        return Err(format!(
            "its description has {} bytes, interface {ABI_MAJOR}.{ABI_MINOR} has {}",
            about.size,
            std::mem::size_of::<About>()
        ));
    }
    if about.align != 0 && (!about.align.is_power_of_two() || about.align as usize > ALIGN) {
        return Err(format!(
            "it wants inputs aligned to {}, which is not a power of two up to {ALIGN}",
            about.align
        ));
    }
    // SAFETY: texts of the description are static by the interface.
    if unsafe { text::read(about.name) }.is_empty() {
        return Err("its description has no name".into());
    }
    Ok(())
}

/// libloading's own text hides the loader's reason in the source.
fn source_text(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}
