//! The entry points of a backend library.

use crate::fault::{Result, TritonFault};
use crate::objects::backend::{BackendAttribute, BackendObject};
use crate::objects::error::ErrorObject;
use crate::objects::instance::InstanceObject;
use crate::objects::model::ModelObject;
use crate::objects::request::RequestObject;
use libloading::os::unix::Library;

/// What all entry points return: null or an error owned by the caller.
pub type Returned = *mut ErrorObject;

/// The functions that a library defines; all but one are optional.
pub struct BackendEntries {
    pub initialize: Option<unsafe extern "C" fn(*mut BackendObject) -> Returned>,
    pub attribute:
        Option<unsafe extern "C" fn(*mut BackendObject, *mut BackendAttribute) -> Returned>,
    pub finalize: Option<unsafe extern "C" fn(*mut BackendObject) -> Returned>,
    pub model_initialize: Option<unsafe extern "C" fn(*mut ModelObject) -> Returned>,
    pub model_finalize: Option<unsafe extern "C" fn(*mut ModelObject) -> Returned>,
    pub instance_initialize: Option<unsafe extern "C" fn(*mut InstanceObject) -> Returned>,
    pub instance_finalize: Option<unsafe extern "C" fn(*mut InstanceObject) -> Returned>,
    pub execute:
        unsafe extern "C" fn(*mut InstanceObject, *const *mut RequestObject, u32) -> Returned,
}

/// A function of the library; null, `None`, if it has none of that name. The loader also looks into
/// the libraries that it needs, so this library must export none of these.
///
/// # Safety
/// `F` is the type of the function.
pub unsafe fn find_symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: by the caller's promise.
    unsafe { library.get::<F>(name.as_bytes()).ok().map(|symbol| *symbol) }
}

impl BackendEntries {
    /// # Errors
    /// A required function is missing.
    pub fn from_library(library: &Library) -> Result<BackendEntries> {
        // SAFETY: the types of these functions in the backend interface.
        unsafe {
            Ok(BackendEntries {
                initialize: find_symbol(library, "TRITONBACKEND_Initialize"),
                attribute: find_symbol(library, "TRITONBACKEND_GetBackendAttribute"),
                finalize: find_symbol(library, "TRITONBACKEND_Finalize"),
                model_initialize: find_symbol(library, "TRITONBACKEND_ModelInitialize"),
                model_finalize: find_symbol(library, "TRITONBACKEND_ModelFinalize"),
                instance_initialize: find_symbol(library, "TRITONBACKEND_ModelInstanceInitialize"),
                instance_finalize: find_symbol(library, "TRITONBACKEND_ModelInstanceFinalize"),
                execute: find_symbol(library, "TRITONBACKEND_ModelInstanceExecute").ok_or_else(|| {
                    TritonFault::not_found(
                        "it does not define TRITONBACKEND_ModelInstanceExecute, which every backend must define",
                    )
                })?,
            })
        }
    }
}

/// Takes the error that an entry point returned.
///
/// # Errors
/// The entry point returned an error, or something else. An error of a load names the function in
/// which it arose.
pub fn take_entry_error(entry: &str, returned: Returned) -> Result<()> {
    if returned.is_null() {
        return Ok(());
    }
    match crate::handles::free_object(returned) {
        Ok(error) if entry.ends_with("Initialize") => Err(error.to_fault().context(entry)),
        Ok(error) => Err(error.to_fault()),
        Err(fault) => {
            Err(TritonFault::internal(format_args!("{entry} returned no valid error: {fault}")))
        }
    }
}
