//! The backend table that a library's entry symbol returns: checked before the host uses it.

use super::refusal::{LoadRefusal, Stage};
use crate::text;
use std::mem::offset_of;
use std::ptr::null_mut;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::BackendInfo;
use trtserver_plugin_api::abi::extensions::{
    AUTOCOMPLETE, AUTOCOMPLETE_VERSION, AutocompleteExtension, BATCH_SIZES, BATCH_SIZES_VERSION,
    BatchSizesExtension, CANCEL, CANCEL_VERSION, CancelExtension, MODEL_PROBE, MODEL_PROBE_VERSION,
    ModelProbeExtension,
};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::types::{Extension, Str};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};
use trtserver_request::buffer::ALIGN;

/// Checks a backend table.
///
/// # Errors
/// What is wrong with it, as the rest of a sentence about the file.
///
/// # Safety
/// `table` is null or what the entry symbol of a library returned for `host`.
pub unsafe fn check_table(
    table: *const BackendTable,
    host: &HostTable,
) -> Result<&'static BackendTable, LoadRefusal> {
    // A backend may refuse the host by returning null.
    // SAFETY: otherwise it is a static table, which starts with these fields in every version.
    let Some(head) = (unsafe { table.cast::<TableHead>().as_ref() }) else {
        let why = "its entry returned no table: the backend refuses this host";
        return Err(LoadRefusal::at(Stage::Interface)(why.into()));
    };
    let abi = Some((head.major, head.minor));
    let fail = |stage| move |why| LoadRefusal { stage, abi, why };
    check_head(head).map_err(fail(Stage::Interface))?;
    // SAFETY: the table has the size of this host's type, as just checked.
    unsafe { check_entries(table) }.map_err(fail(Stage::RequiredEntries))?;
    // SAFETY: size and version were checked, and the required entries are not null.
    let table = unsafe { &*table };
    // SAFETY: the entry accepts null.
    let info = unsafe { (table.backend_info)(null_mut()) };
    // SAFETY: null or an info, by the interface.
    unsafe { check_info(info) }.map_err(fail(Stage::Description))?;
    // SAFETY: the info was just checked, and is static.
    check_extensions(unsafe { &*info }, table, host).map_err(fail(Stage::Extensions))?;
    Ok(table)
}

/// The head of a table as plain numbers.
#[repr(C)]
struct TableHead {
    size: u64,
    major: u32,
    minor: u32,
}

fn check_head(head: &TableHead) -> Result<(), String> {
    let (major, minor) = (head.major, head.minor);
    check_version(major, minor)?;
    let expected = size_of::<BackendTable>();
    if head.size < expected as u64 {
        return Err(format!(
            "its table has {} bytes, interface {major}.{minor} has {expected}: the file is damaged or was built from a \
             header that was changed",
            head.size
        ));
    }
    Ok(())
}

/// Checks whether this host runs backends of that interface.
///
/// # Errors
/// The rule that it breaks.
pub fn check_version(major: u32, minor: u32) -> Result<(), String> {
    if major == ABI_MAJOR && (major, minor) <= (ABI_MAJOR, ABI_MINOR) {
        return Ok(());
    }
    Err(format!(
        "built for plugin interface {major}.{minor}, this host offers {ABI_MAJOR}.{ABI_MINOR}: the major number must \
         be equal and the backend's minor number at most the host's"
    ))
}

/// # Safety
/// The table can be read as numbers.
unsafe fn check_entries(table: *const BackendTable) -> Result<(), String> {
    let entries = [
        ("backend_info", offset_of!(BackendTable, backend_info)),
        ("backend_open", offset_of!(BackendTable, backend_open)),
        ("backend_close", offset_of!(BackendTable, backend_close)),
        ("model_open", offset_of!(BackendTable, model_open)),
        ("model_close", offset_of!(BackendTable, model_close)),
        ("instance_open", offset_of!(BackendTable, instance_open)),
        ("instance_close", offset_of!(BackendTable, instance_close)),
        ("execute", offset_of!(BackendTable, execute)),
    ];
    for (name, offset) in entries {
        // SAFETY: by the caller's promise; an entry is one pointer, read as a number since it may
        // be null.
        if unsafe { table.cast::<u8>().add(offset).cast::<usize>().read() } == 0 {
            return Err(format!("required entry '{name}' is missing"));
        }
    }
    Ok(())
}

/// Checks a backend info.
///
/// # Safety
/// `info` is null, or points to the info of a backend, which begins with its size.
///
/// # Errors
/// What is wrong with it.
pub unsafe fn check_info(info: *const BackendInfo) -> Result<(), String> {
    if info.is_null() {
        return Err("backend_info returned null".into());
    }
    // SAFETY: an info starts with its size in every version.
    let size = unsafe { info.cast::<u64>().read() };
    let expected = size_of::<BackendInfo>();
    if size < expected as u64 {
        return Err(format!(
            "its backend info has {size} bytes, interface {ABI_MAJOR}.{ABI_MINOR} has {expected}"
        ));
    }
    // SAFETY: it has that many bytes.
    let info = unsafe { &*info };
    // SAFETY: texts of an info are static by the interface.
    check_facts(&unsafe { text::read_text(info.name) }, info.align.into())
}

/// Checks name and alignment of a backend info.
pub fn check_facts(name: &str, align: u64) -> Result<(), String> {
    if align != 0 && (!align.is_power_of_two() || align > ALIGN as u64) {
        return Err(format!(
            "it requires inputs aligned to {align}, which is not a power of two up to {ALIGN}"
        ));
    }
    if name.is_empty() {
        return Err("its backend info has no name".into());
    }
    Ok(())
}

/// Checks that the host offers every extension that the backend requires, and that the backend
/// returns every extension that it lists.
fn check_extensions(
    info: &BackendInfo,
    table: &BackendTable,
    host: &HostTable,
) -> Result<(), String> {
    // SAFETY: the backend info is static memory of the library, by the interface, and says how many
    // extensions it requires.
    for required in unsafe { list(info.required_extensions, info.n_required_extensions) } {
        // SAFETY: the name is valid during the call.
        if unsafe { (host.get_extension)(required.name, required.version) }.is_null() {
            // SAFETY: the host table is constant.
            let offered = unsafe { list(host.extensions, host.n_extensions) };
            let offered: Vec<String> = offered.iter().map(named).collect();
            let offered = if offered.is_empty() { "none".into() } else { offered.join(", ") };
            return Err(format!(
                "it requires the host extension {}, this host offers: {offered}",
                named(required)
            ));
        }
    }
    // SAFETY: the backend info is static memory of the library and says how many extensions it
    // lists.
    for listed in unsafe { list(info.extensions, info.n_extensions) } {
        if find_extension(table, listed.name, listed.version).is_none() {
            return Err(format!("it lists the extension {} and does not return it", named(listed)));
        }
    }
    Ok(())
}

/// `'trts.metrics' 1`
fn named(extension: &Extension) -> String {
    // SAFETY: names in lists of extensions are static.
    format!("'{}' {}", unsafe { text::read_text(extension.name) }, extension.version)
}

/// # Safety
/// `p` is null or valid for `n` elements.
unsafe fn list<'a>(p: *const Extension, n: u32) -> &'a [Extension] {
    if p.is_null() || n == 0 {
        return &[];
    }
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts(p, n as usize) }
}

fn find_extension(table: &BackendTable, name: Str, version: u32) -> Option<*const u8> {
    let get = table.get_extension?;
    // SAFETY: the name is valid during the call.
    let found = unsafe { get(name, version) };
    (!found.is_null()).then_some(found)
}

/// The backend's autocomplete entries, if it offers them.
pub fn autocomplete_extension(table: &BackendTable) -> Option<&'static AutocompleteExtension> {
    let name = text::c_text(AUTOCOMPLETE);
    // SAFETY: a table that a backend returns for this name is static and of this type.
    unsafe {
        find_extension(table, text::str_view(&name), AUTOCOMPLETE_VERSION)?
            .cast::<AutocompleteExtension>()
            .as_ref()
    }
}

/// The backend's cancellation entries, if it offers them.
pub fn cancel_extension(table: &BackendTable) -> Option<&'static CancelExtension> {
    let name = text::c_text(CANCEL);
    // SAFETY: a table that a backend returns for this name is static and of this type.
    unsafe {
        find_extension(table, text::str_view(&name), CANCEL_VERSION)?
            .cast::<CancelExtension>()
            .as_ref()
    }
}

/// The backend's list of prepared batch sizes, if it offers one.
pub fn batch_sizes_extension(table: &BackendTable) -> Option<&'static BatchSizesExtension> {
    let name = text::c_text(BATCH_SIZES);
    // SAFETY: a table that a backend returns for this name is static and of this type.
    unsafe {
        find_extension(table, text::str_view(&name), BATCH_SIZES_VERSION)?
            .cast::<BatchSizesExtension>()
            .as_ref()
    }
}

/// The backend's recognition of model files, if it offers it.
pub fn model_probe(table: &BackendTable) -> Option<&'static ModelProbeExtension> {
    let name = text::c_text(MODEL_PROBE);
    // SAFETY: a table that a backend returns for this name is static and of this type.
    unsafe {
        find_extension(table, text::str_view(&name), MODEL_PROBE_VERSION)?
            .cast::<ModelProbeExtension>()
            .as_ref()
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
