//! Checks the backend table and the backend info of a plugin, and widens smaller ones of older minor versions.
//!
//! The rules of growth are in `plugin-api/src/abi/mod.rs`.

use super::refusal::{Refusal, Stage};
use crate::plugin::text;
use crate::request::buffer::ALIGN;
use std::mem::MaybeUninit;
use trtserver_plugin_api::abi::describe::About;
use trtserver_plugin_api::abi::plugin::PluginTable;
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

/// Sizes in interface 1.0, the smallest that are accepted. Written out, because the types grow.
const PLUGIN_TABLE_1_0: usize = 16 + 19 * size_of::<usize>();
const ABOUT_1_0: usize = 160;

/// The checked table, widened to this host's size.
///
/// # Errors
/// The fault, as the rest of a sentence about the file.
pub fn checked(table: *const PluginTable) -> Result<&'static PluginTable, Refusal> {
    // A plugin refuses the host by returning null.
    // SAFETY: otherwise it is the plugin's static table, which starts with the fields checked below.
    let Some(head) = (unsafe { table.cast::<Head>().as_ref() }) else {
        let why = "its entry returned no table: the backend refuses this host";
        return Err(Refusal::at(Stage::Interface)(why.into()));
    };
    let abi = Some((head.major, head.minor));
    let fail = |stage| move |why| Refusal { stage, abi, why };
    check_head(head).map_err(fail(Stage::Interface))?;
    if let Some(missing) = head.required.iter().position(|entry| *entry == 0) {
        let name = ["describe", "plugin_open", "plugin_close"][missing];
        return Err(fail(Stage::RequiredEntries)(format!("required entry '{name}' is missing")));
    }
    check_required(table).map_err(fail(Stage::RequiredEntries))?;
    // SAFETY: size and version were checked, and the required entries are not null.
    let table = unsafe { &*Box::leak(widened(table, head.size)).as_ptr() };
    // SAFETY: the interface allows describe(null) at any time.
    let about = unsafe { (table.describe)(std::ptr::null_mut()) };
    check_about(about).map_err(fail(Stage::Description))?;
    Ok(table)
}

fn check_head(head: &Head) -> Result<(), String> {
    let (major, minor) = (head.major, head.minor);
    check_version(major, minor)?;
    if head.size < PLUGIN_TABLE_1_0 as u64 {
        return Err(format!(
            "its table has {} bytes, interface {major}.{minor} has {PLUGIN_TABLE_1_0}: the file is damaged or was \
             built from a modified header",
            head.size
        ));
    }
    Ok(())
}

/// Whether this host runs plugins of that interface version.
///
/// # Errors
/// The rule that is broken.
pub fn check_version(major: u32, minor: u32) -> Result<(), String> {
    if major == ABI_MAJOR && minor <= ABI_MINOR {
        return Ok(());
    }
    Err(format!(
        "built for plugin interface {major}.{minor}, this host offers {ABI_MAJOR}.{ABI_MINOR}: the major number must \
         be equal and the backend's minor number at most the host's"
    ))
}

/// Copies a struct of `size` bytes into this host's size of it. Fields that the plugin does not have are zero, which
/// always means absent; fields unknown to this host are dropped.
///
/// # Safety
/// `size` bytes can be read at `from`.
unsafe fn widened<T>(from: *const T, size: u64) -> Box<MaybeUninit<T>> {
    let mut to = Box::new(MaybeUninit::<T>::zeroed());
    let bytes = (size as usize).min(size_of::<T>());
    // SAFETY: both sides have that many bytes; fresh memory overlaps nothing.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.as_mut_ptr().cast(), bytes) };
    to
}

/// A plugin's backend info, widened to this host's size.
///
/// # Safety
/// `about` was returned by `describe` of a plugin, and its size is at least that of 1.0.
pub unsafe fn about(about: *const About) -> About {
    // SAFETY: by the caller's promise; its fields are numbers and pointers, which may be zero.
    unsafe { widened(about, (*about).size).assume_init_read() }
}

/// The head of a table as plain numbers: function pointers must not be null before they are typed.
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
        // SAFETY: the table has all entries of 1.0, these among them; an entry is one pointer, read as a number.
        if unsafe { table.cast::<u8>().add(offset).cast::<usize>().read() } == 0 {
            return Err(format!("required entry '{name}' is missing"));
        }
    }
    Ok(())
}

/// Checks a backend info.
pub fn check_about(about: *const About) -> Result<(), String> {
    if about.is_null() {
        return Err("describe returned nothing".into());
    }
    // SAFETY: describe returns a static struct that begins with its size.
    let size = unsafe { about.cast::<u64>().read() };
    if size < ABOUT_1_0 as u64 {
        return Err(format!(
            "its description has {size} bytes, interface {ABI_MAJOR}.0 has {ABOUT_1_0}"
        ));
    }
    // SAFETY: it has that many bytes.
    let about = unsafe { self::about(about) };
    if about.align != 0 && (!about.align.is_power_of_two() || about.align as usize > ALIGN) {
        return Err(format!(
            "it requests inputs aligned to {}, which is not a power of two up to {ALIGN}",
            about.align
        ));
    }
    // SAFETY: texts of the description are static by the interface.
    if unsafe { text::read(about.name) }.is_empty() {
        return Err("its description has no name".into());
    }
    Ok(())
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
