//! The library: opened when the first model needs it and never closed.

use crate::messages::{clean_message, major_version, short_version};
use crate::symbols::{
    CompileFunction, ExtendFunction, OvCore, OvDevices, OvTable, OvVersion, Status,
};
use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::library_slot::FrameworkLibrary;
use trtserver_framework::search::{Framework, SETTING, load_resolved, read_c_text};

/// The first release whose numbers of element types are those of `types.rs`.
const OLDEST: u32 = 2025;

pub const OPENVINO: Framework = Framework {
    name: "OpenVINO",
    backend: crate::BACKEND,
    setting: SETTING,
    variable: "TRTSERVER_OPENVINO_LIBRARY",
    files: &["libopenvino_c.so"],
    system: &["libopenvino_c.so"],
    packages: &["openvino/libs"],
    advice: "`cargo xtask runtimes --openvino`, or `pip install openvino`, which installs \
             openvino/libs/libopenvino_c.so.<version>,",
};

/// The open library and its core, which finds devices and formats.
pub struct OpenVino {
    pub table: OvTable,
    pub compile: CompileFunction,
    /// Older releases lack it.
    extend: Option<ExtendFunction>,
    pub core: *mut OvCore,
    /// For operators: `OpenVINO 2026.4.1`.
    pub label: String,
}

// SAFETY: the functions of the C interface may be called on any thread, and a core is one that
// locks what it shares.
unsafe impl Send for OpenVino {}
// SAFETY: as above.
unsafe impl Sync for OpenVino {}

impl FrameworkLibrary for OpenVino {
    fn label(&self) -> &str {
        &self.label
    }
}

impl OpenVino {
    /// # Errors
    /// It is another library, or an old one; the reason follows the path.
    pub fn open(path: &Path) -> Result<Self, String> {
        let library = load_resolved(path)?;
        // SAFETY: the names are those of OpenVINO's C interface.
        let loaded = unsafe { OvTable::load(&library) };
        let table = loaded.map_err(|absent| absent_functions(&absent))?;
        // SAFETY: the signatures are those of OpenVINO's headers.
        let (compile, extend) = unsafe {
            (
                library.get::<CompileFunction>(b"ov_core_compile_model\0").map(|found| *found),
                library.get::<ExtendFunction>(b"ov_core_add_extension\0").map(|found| *found),
            )
        };
        let compile = compile.map_err(|_| absent_functions(&["ov_core_compile_model"]))?;
        // The functions point into the library, so it must not be closed.
        std::mem::forget(library);
        let build = read_version(&table)?;
        expect_version(&build)?;
        let label = format!("OpenVINO {}", short_version(&build));
        let mut opened = Self { table, compile, extend: extend.ok(), core: ptr::null_mut(), label };
        let mut core = ptr::null_mut();
        // SAFETY: the out pointer is ours.
        let status = unsafe { (opened.table.core_create)(&raw mut core) };
        opened.outcome(status).map_err(|fault| format!("it cannot be started: {fault}"))?;
        opened.core = core;
        Ok(opened)
    }

    /// The result of a function that can fail. The library has one text for the process: that of
    /// the last failure of any thread.
    pub fn outcome(&self, status: Status) -> Result<(), PluginFault> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: texts that the library allocates for the caller; the second is a constant.
        let (text, kind) = unsafe {
            (
                self.take_text((self.table.last_error)()),
                read_c_text((self.table.status_text)(status)),
            )
        };
        let text = clean_message(&text);
        Err(PluginFault::internal(match text.is_empty() {
            true => format!("OpenVINO: {kind} (status {status})"),
            false => format!("OpenVINO: {text}"),
        }))
    }

    /// A text that the library has allocated, which is freed.
    ///
    /// # Safety
    /// Null, or a text without another owner.
    pub unsafe fn take_text(&self, text: *const c_char) -> String {
        // SAFETY: the caller's promise; freed once.
        unsafe {
            let own = read_c_text(text);
            if !text.is_null() {
                (self.table.free)(text);
            }
            own
        }
    }

    /// The devices that this machine has.
    ///
    /// # Errors
    /// The library's.
    pub fn devices(&self) -> Result<Vec<String>, PluginFault> {
        let mut devices = OvDevices { names: ptr::null_mut(), count: 0 };
        // SAFETY: the list is ours until it is freed, and holds `count` texts.
        unsafe {
            self.outcome((self.table.devices)(self.core, &raw mut devices))?;
            let names = (0..devices.count).map(|at| read_c_text(*devices.names.add(at))).collect();
            (self.table.devices_free)(&raw mut devices);
            Ok(names)
        }
    }

    /// Adds the operations of a library, for all models of the process.
    ///
    /// # Errors
    /// The library's, or this release cannot.
    pub fn add_extension(&self, path: &Path) -> Result<(), PluginFault> {
        let Some(extend) = self.extend else {
            return Err(PluginFault::unsupported(format!(
                "{} has no interface for it; newer releases have",
                self.label
            )));
        };
        let path = c_path(path)?;
        // SAFETY: the core is alive, the path a C string.
        unsafe { self.outcome(extend(self.core, path.as_ptr())) }
    }
}

impl Drop for OpenVino {
    fn drop(&mut self) {
        if !self.core.is_null() {
            // SAFETY: ours, and freed once: models hold the `Arc` that this is in.
            unsafe { (self.table.core_free)(self.core) }
        }
    }
}

/// A path as the library takes it.
pub fn c_path(path: &Path) -> Result<CString, PluginFault> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| PluginFault::invalid(format!("the path {} has a NUL byte", path.display())))
}

fn read_version(table: &OvTable) -> Result<String, String> {
    let mut version = OvVersion { build: ptr::null(), description: ptr::null() };
    // SAFETY: the library fills in two texts, which are read before they are freed.
    unsafe {
        match (table.version)(&raw mut version) {
            0 => {
                let build = read_c_text(version.build);
                (table.version_free)(&raw mut version);
                Ok(build)
            }
            status => Err(format!("it does not tell its version (status {status})")),
        }
    }
}

/// # Errors
/// The release is too old; its numbers of element types are other ones.
fn expect_version(build: &str) -> Result<(), String> {
    match major_version(build) {
        Some(major) if major < OLDEST => Err(format!(
            "it is OpenVINO {}, and this plugin needs {OLDEST}.0 or newer",
            short_version(build)
        )),
        _ => Ok(()),
    }
}

fn absent_functions(absent: &[&str]) -> String {
    let all = absent.join(", ");
    format!(
        "it lacks functions of OpenVINO's C interface that are needed, so it is older than {OLDEST}.0, or not OpenVINO \
         at all (whose functions begin with ov_): {all}"
    )
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
