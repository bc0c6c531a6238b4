//! Functions about the library itself.

use crate::arguments;
use crate::failure::ignore_panic;
use crate::handle;
use std::ffi::{c_char, c_void};

#[unsafe(no_mangle)]
pub extern "C" fn trtc_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_live_handles() -> usize {
    ignore_panic(0, handle::count_handles)
}

/// # Safety
/// `size` is NULL or points to a writable number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_descriptors(size: *mut usize) -> *const c_void {
    // SAFETY: the contract of this function.
    if let Ok(place) = unsafe { arguments::result_place(size, "size") } {
        place.write(trtserver_proto::DESCRIPTORS.len());
    }
    trtserver_proto::DESCRIPTORS.as_ptr().cast()
}
