//! TensorRT's libraries: opened when the first model needs their major version, never closed,
//! several majors side by side.
//!
//! Nothing is linked. `getInferLibVersion` selects the table of slots.

use crate::callbacks::logger::{self, Logger};
use crate::callbacks::{allocator, outputs};
use crate::driver;
use crate::library_places::LibraryPlaces;
use crate::slots::{self, Version};
use crate::vtable::{self, Raw};
use libloading::os::unix::Library as Handle;
use std::ffi::c_void;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::log;
use trtserver_framework::search::load_library;
use trtserver_plugin_api::abi::types::level;

/// Addresses below this are not objects: without a usable device `createInferRuntime_INTERNAL`
/// returns such a number.
const LOWEST_OBJECT: usize = 0x1_0000;

type CreateRuntime = unsafe extern "C" fn(Raw, i32) -> Raw;
type CreateRefitter = unsafe extern "C" fn(Raw, Raw, i32) -> Raw;

/// An opened library.
pub struct Library {
    pub version: Version,
    /// Its path, or the name that the dynamic loader resolved.
    pub origin: String,
    pub slots: &'static slots::SlotTable,
    /// What `getInferLibVersion` returned.
    number: i32,
    create_runtime: CreateRuntime,
    create_refitter: Option<CreateRefitter>,
    logger: &'static Logger,
    pub allocators: &'static vtable::MethodTable,
    pub output_allocators: &'static vtable::MethodTable,
}

/// The opened libraries, at most one for each major. The lock is held while one is opened, so that
/// concurrent loads open it once.
static OPENED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

/// The opened libraries, for operators.
pub fn opened_libraries() -> Vec<&'static Library> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The library of a major version. A failure is not remembered: the next load tries again.
///
/// # Errors
/// No library was found, or none can be used: names what was tried, and the reasons.
pub fn open_library(major: u32, places: &LibraryPlaces) -> Result<&'static Library, PluginFault> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = opened.iter().find(|library| library.version.major == major) {
        return Ok(library);
    }
    let Some(table) = slots::slot_table(major) else {
        return Err(PluginFault::unsupported(format!(
            "TensorRT {major} is not supported; supported are {}",
            supported_versions()
        )));
    };
    let mut reasons = Vec::new();
    for path in places.candidates(major) {
        match Library::open(&path, table) {
            Ok(library) => {
                let library: &'static Library = Box::leak(Box::new(library));
                log::write_line(
                    level::INFO,
                    &format!("TensorRT {} from {}", library.version, library.origin),
                );
                opened.push(library);
                return Ok(library);
            }
            Err(reason) if reason.contains("cannot open shared object file") => {}
            Err(reason) => reasons.push(format!("{}: {reason}", path.display())),
        }
    }
    let mut text = format!(
        "no usable TensorRT {major} library was found; looked for {} in {}",
        places_names(major),
        places.text()
    );
    for reason in reasons {
        text.push_str(&format!("\nunusable: {reason}"));
    }
    let others: Vec<String> = places
        .majors(&known_majors())
        .into_iter()
        .filter(|other| *other != major)
        .map(|major| major.to_string())
        .collect();
    if !others.is_empty() {
        text.push_str(&format!("\nlibraries of TensorRT {} are there", others.join(", ")));
    }
    text.push_str(&format!(
        "\nInstall TensorRT {major}, and name its directory with --backend-config=tensorrt,{}=DIRECTORY",
        crate::library_places::SETTING
    ));
    Err(PluginFault::unavailable(text))
}

pub fn known_majors() -> Vec<u32> {
    slots::TABLES.iter().map(|table| table.major).collect()
}

/// `8, 10, 11`.
pub fn supported_versions() -> String {
    let majors: Vec<String> = known_majors().iter().map(u32::to_string).collect();
    majors.join(", ")
}

fn places_names(major: u32) -> String {
    let names = crate::library_places::STEMS.map(|stem| format!("{stem}.so.{major}"));
    names.join(", ")
}

impl Library {
    fn open(path: &Path, table: &'static slots::SlotTable) -> Result<Library, String> {
        let handle = load_library(path)?;
        // SAFETY: the functions of these names have these types in every release.
        let (version, create_runtime, create_refitter) = unsafe {
            let version =
                *find_symbol::<unsafe extern "C" fn() -> i32>(&handle, "getInferLibVersion")?;
            let runtime = *find_symbol::<CreateRuntime>(&handle, "createInferRuntime_INTERNAL")?;
            let refitter = find_symbol::<CreateRefitter>(&handle, "createInferRefitter_INTERNAL");
            (version, runtime, refitter.ok().map(|f| *f))
        };
        // SAFETY: a function without arguments.
        let number = unsafe { version() };
        let version = Version::from_number(number).ok_or_else(|| {
            format!("getInferLibVersion returned {number}, which is not a version")
        })?;
        if version.major != table.major {
            return Err(format!(
                "the library is TensorRT {version}, its name says major version {}",
                table.major
            ));
        }
        if version < table.oldest {
            return Err(format!(
                "the library is TensorRT {version}; {} or newer is needed",
                table.oldest
            ));
        }
        // The functions point into the library, so it must not be closed.
        std::mem::forget(handle);
        Ok(Library {
            version,
            origin: path.display().to_string(),
            slots: table,
            number,
            create_runtime,
            create_refitter,
            logger: Logger::new(table, version),
            allocators: allocator::allocator_table(table, version),
            output_allocators: outputs::output_allocator_table(table, version),
        })
    }

    /// Creates an `IRuntime`. The context of the device is current.
    ///
    /// # Errors
    /// There is no device, or the driver is too old for the library.
    pub fn create_runtime(&self) -> Result<Raw, PluginFault> {
        let driver = driver::cuda_driver().map_err(|reason| {
            PluginFault::unavailable(format!("TensorRT {} needs a GPU: {reason}", self.version))
        })?;
        logger::clear_errors();
        // SAFETY: the logger is an object of this library's `ILogger`, and lives for ever.
        let runtime = unsafe { (self.create_runtime)(self.logger.raw(), self.number) };
        if runtime.addr() < LOWEST_OBJECT {
            return Err(PluginFault::unavailable(format!(
                "TensorRT {} ({}) cannot start: {}. The NVIDIA driver supports CUDA {}; if that is older than \
                 what the library was built for, update the driver",
                self.version,
                self.origin,
                logger::take_errors().unwrap_or_else(|| "it gave no reason".to_owned()),
                driver.version()
            )));
        }
        Ok(runtime)
    }

    /// Creates an `IRefitter` of an engine.
    ///
    /// # Errors
    /// The library has no refitter, or refuses the engine.
    pub fn create_refitter(&self, engine: Raw) -> Result<Raw, String> {
        let create = self.create_refitter.ok_or_else(|| {
            format!("TensorRT {} has no function createInferRefitter_INTERNAL", self.version)
        })?;
        logger::clear_errors();
        // SAFETY: an engine of this library, and its logger.
        let refitter = unsafe { create(engine, self.logger.raw(), self.number) };
        if refitter.addr() < LOWEST_OBJECT {
            return Err(
                logger::take_errors().unwrap_or_else(|| "no refitter was created".to_owned())
            );
        }
        Ok(refitter)
    }

    /// The logger, for functions of plugin libraries.
    pub fn logger(&self) -> *mut c_void {
        self.logger.raw()
    }
}

/// # Safety
/// The function of this name has type `F`.
unsafe fn find_symbol<F>(
    library: &Handle,
    name: &str,
) -> Result<libloading::os::unix::Symbol<F>, String> {
    // SAFETY: by the caller's promise.
    unsafe { library.get::<F>(name.as_bytes()) }
        .map_err(|_| format!("it is not TensorRT: it lacks the function {name}"))
}
