//! The entry points of a backend library.

use crate::fault::{Fault, Result};
use crate::objects::backend::{Attribute, Backend};
use crate::objects::error::Error;
use crate::objects::instance::Instance;
use crate::objects::model::Model;
use crate::objects::request::Request;
use libloading::os::unix::Library;

/// What all entry points return: null or an error owned by the caller.
pub type Returned = *mut Error;

/// The functions that a library defines; all but one are optional.
pub struct Entries {
    pub initialize: Option<unsafe extern "C" fn(*mut Backend) -> Returned>,
    pub attribute: Option<unsafe extern "C" fn(*mut Backend, *mut Attribute) -> Returned>,
    pub finalize: Option<unsafe extern "C" fn(*mut Backend) -> Returned>,
    pub model_initialize: Option<unsafe extern "C" fn(*mut Model) -> Returned>,
    pub model_finalize: Option<unsafe extern "C" fn(*mut Model) -> Returned>,
    pub instance_initialize: Option<unsafe extern "C" fn(*mut Instance) -> Returned>,
    pub instance_finalize: Option<unsafe extern "C" fn(*mut Instance) -> Returned>,
    pub execute: unsafe extern "C" fn(*mut Instance, *const *mut Request, u32) -> Returned,
}

/// A function of the library; null, `None`, if it has none of that name. The loader also looks into the libraries that it needs, so this library must export none of these.
///
/// # Safety
/// `F` is the type of the function.
pub unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: by the caller's promise.
    unsafe { library.get::<F>(name.as_bytes()).ok().map(|symbol| *symbol) }
}

impl Entries {
    /// # Errors
    /// A required function is missing.
    pub fn of(library: &Library) -> Result<Entries> {
        // SAFETY: the types of these functions in the backend interface.
        unsafe {
            Ok(Entries {
                initialize: symbol(library, "TRITONBACKEND_Initialize"),
                attribute: symbol(library, "TRITONBACKEND_GetBackendAttribute"),
                finalize: symbol(library, "TRITONBACKEND_Finalize"),
                model_initialize: symbol(library, "TRITONBACKEND_ModelInitialize"),
                model_finalize: symbol(library, "TRITONBACKEND_ModelFinalize"),
                instance_initialize: symbol(library, "TRITONBACKEND_ModelInstanceInitialize"),
                instance_finalize: symbol(library, "TRITONBACKEND_ModelInstanceFinalize"),
                execute: symbol(library, "TRITONBACKEND_ModelInstanceExecute").ok_or_else(|| {
                    Fault::not_found(
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
pub fn taken(entry: &str, returned: Returned) -> Result<()> {
    if returned.is_null() {
        return Ok(());
    }
    match crate::handles::free(returned) {
        Ok(error) if entry.ends_with("Initialize") => Err(error.to_fault().context(entry)),
        Ok(error) => Err(error.to_fault()),
        Err(fault) => {
            Err(Fault::internal(format_args!("{entry} returned no valid error: {fault}")))
        }
    }
}
