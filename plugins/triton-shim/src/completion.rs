//! Completing configurations: `TRITONBACKEND_ModelSetConfig` and what follows from it.

use crate::fault::{Fault, Result};
use crate::objects::model::Model;
use std::ffi::CStr;
use std::sync::atomic::Ordering;

/// Takes over what a backend adds to the configuration of its model.
///
/// # Errors
/// Outside of `TRITONBACKEND_ModelInitialize`, when the operator has disabled it, or as the host says.
pub fn set_config(model: &Model, _json: &CStr) -> Result<()> {
    if !model.completing.load(Ordering::Acquire) {
        return Err(Fault::unsupported(
            "TRITONBACKEND_ModelSetConfig is for TRITONBACKEND_ModelInitialize, of a model whose configuration may be completed",
        ));
    }
    Err(Fault::unsupported("this server does not let backends complete configurations"))
}
