//! Descriptions of memory, allocators, the arena of a session.

use super::handles::{OK, handle, release, status, text};
use crate::session::Session;
use crate::value::{MemoryInfo, Place};
use ort_sys::*;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

pub unsafe extern "system" fn CreateCpuMemoryInfo(
    _: OrtAllocatorType,
    _: OrtMemType,
    out: *mut *mut OrtMemoryInfo,
) -> OrtStatusPtr {
    give!(out, handle(MemoryInfo { place: Place::Cpu }));
    OK
}

pub unsafe extern "system" fn CreateMemoryInfo(
    name: *const c_char,
    _: OrtAllocatorType,
    id: c_int,
    _: OrtMemType,
    out: *mut *mut OrtMemoryInfo,
) -> OrtStatusPtr {
    let place = if text(name) == "Cuda" { Place::Cuda(id) } else { Place::Cpu };
    give!(out, handle(MemoryInfo { place }));
    OK
}

pub unsafe extern "system" fn ReleaseMemoryInfo(info: *mut OrtMemoryInfo) {
    // SAFETY: the caller's handle.
    unsafe { release::<MemoryInfo, _>(info) }
}

pub unsafe extern "system" fn MemoryInfoGetDeviceType(
    info: *const OrtMemoryInfo,
    out: *mut OrtMemoryInfoDeviceType,
) {
    give!(
        out,
        match at!(info, MemoryInfo).place {
            Place::Cpu => OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU,
            Place::Cuda(_) => OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU,
        }
    );
}

pub unsafe extern "system" fn MemoryInfoGetDeviceMemType(
    _: *const OrtMemoryInfo,
) -> OrtDeviceMemoryType {
    OrtDeviceMemoryType::OrtDeviceMemoryType_DEFAULT
}

pub unsafe extern "system" fn GetAllocatorWithDefaultOptions(
    out: *mut *mut OrtAllocator,
) -> OrtStatusPtr {
    // Its memory is freed by `AllocatorFree`, which needs no state.
    give!(out, ptr::without_provenance_mut(64));
    OK
}

/// Texts and lists are some bytes per session and run of a test: they are leaked.
pub unsafe extern "system" fn AllocatorFree(_: *mut OrtAllocator, _: *mut c_void) -> OrtStatusPtr {
    OK
}

pub unsafe extern "system" fn CreateAllocator(
    session: *const OrtSession,
    _: *const OrtMemoryInfo,
    out: *mut *mut OrtAllocator,
) -> OrtStatusPtr {
    let Some(gpu) = &at!(session, Session).gpu else {
        return status(Err("the session has no arena of a device".to_owned()));
    };
    give!(out, handle(Arc::clone(&gpu.arena)));
    OK
}

type ArenaHandle = Arc<crate::arena::Arena>;

pub unsafe extern "system" fn ReleaseAllocator(it: *mut OrtAllocator) {
    // SAFETY: the caller's handle.
    unsafe { release::<ArenaHandle, _>(it) }
}

pub unsafe extern "system" fn AllocatorGetStats(
    it: *const OrtAllocator,
    out: *mut *mut OrtKeyValuePairs,
) -> OrtStatusPtr {
    let total = at!(it, ArenaHandle).total();
    give!(out, handle(CString::new(total.to_string()).unwrap_or_default()));
    OK
}

pub unsafe extern "system" fn GetKeyValue(
    it: *const OrtKeyValuePairs,
    key: *const c_char,
) -> *const c_char {
    if text(key) == "TotalAllocated" { at!(it, CString).as_ptr() } else { ptr::null() }
}

pub unsafe extern "system" fn ReleaseKeyValuePairs(it: *mut OrtKeyValuePairs) {
    // SAFETY: the caller's handle.
    unsafe { release::<CString, _>(it) }
}
