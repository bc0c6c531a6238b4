//! The classes of TensorRT that the plugin implements: logger, GPU allocator, output allocator.

pub mod allocator; // IGpuAllocator: device memory of the host
pub mod logger; // ILogger: the host's log
pub mod outputs; // IOutputAllocator: outputs whose shape the run decides

use crate::slots::{Version, versioned};
use crate::vtable::{InterfaceInfo, Raw};
use std::ffi::CStr;

/// The entries of `IVersionedInterface` for a class of this name.
fn versioned_entries(
    info: unsafe extern "C" fn(Raw) -> InterfaceInfo,
) -> [(Option<usize>, *const ()); 2] {
    [
        (Some(versioned::GET_API_LANGUAGE), cpp as *const ()),
        (Some(versioned::GET_INTERFACE_INFO), info as *const ()),
    ]
}

/// `APILanguage::kCPP`.
unsafe extern "C" fn cpp(_this: Raw) -> i32 {
    0
}

fn info(kind: &'static CStr) -> InterfaceInfo {
    InterfaceInfo { kind: kind.as_ptr(), major: 1, minor: 0 }
}

/// A slot of a table that `version` has.
fn at(method: crate::slots::Method, version: Version) -> Option<usize> {
    method.slot(version)
}
