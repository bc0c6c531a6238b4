//! The compute capability of a GPU, from the driver, which is loaded at run time.

use crate::library::loader_message;
use libloading::Library;
use std::ffi::c_int;
use std::ptr;
use trtserver_plugin_api::author::Error;

const MAJOR: c_int = 75;
const MINOR: c_int = 76;

/// `major.minor`, as `cc_model_filenames` spells it.
pub fn compute_capability(device: i32) -> Result<String, Error> {
    let fail = |what: &dyn std::fmt::Display| {
        Error::unavailable(format_args!(
            "cannot read the compute capability of GPU {device}: {what}"
        ))
    };
    // SAFETY: the system's driver library; the functions have had these types since CUDA 2.
    unsafe {
        let driver = Library::new("libcuda.so.1").map_err(|e| fail(&loader_message(&e)))?;
        let init = driver
            .get::<unsafe extern "C" fn(u32) -> c_int>(b"cuInit\0")
            .map_err(|e| fail(&loader_message(&e)))?;
        let get = driver
            .get::<unsafe extern "C" fn(*mut c_int, c_int) -> c_int>(b"cuDeviceGet\0")
            .map_err(|e| fail(&loader_message(&e)))?;
        let attribute = driver
            .get::<unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int>(
                b"cuDeviceGetAttribute\0",
            )
            .map_err(|e| fail(&loader_message(&e)))?;
        let check = |entry: &str, code: c_int| match code {
            0 => Ok(()),
            _ => Err(fail(&format_args!("{entry} returned {code}"))),
        };
        check("cuInit", init(0))?;
        let (mut handle, mut major, mut minor) = (0, 0, 0);
        check("cuDeviceGet", get(ptr::from_mut(&mut handle), device))?;
        for (number, value) in [(MAJOR, &mut major), (MINOR, &mut minor)] {
            check("cuDeviceGetAttribute", attribute(ptr::from_mut(value), number, handle))?;
        }
        // Never closed: other code in the process uses the driver.
        std::mem::forget(driver);
        Ok(format!("{major}.{minor}"))
    }
}
