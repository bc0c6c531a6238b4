//! The classes of TensorRT that the plugin implements: logger, GPU allocator, output allocator.

pub mod allocator; // IGpuAllocator: device memory of the host
pub mod logger; // ILogger: the host's log
pub mod outputs; // IOutputAllocator: outputs whose shape the run decides

use crate::slots::{Version, versioned};
use crate::vtable::{InterfaceInfo, MethodTable, Raw};
use std::ffi::CStr;

/// The table of a class with these methods; `versioned`: it is an `IVersionedInterface`, whose
/// methods are added.
fn build_table(
    versioned: bool,
    info: unsafe extern "C" fn(Raw) -> InterfaceInfo,
    methods: &[(Option<usize>, *const ())],
) -> &'static MethodTable {
    let interface = [
        (Some(versioned::GET_API_LANGUAGE), cpp as *const ()),
        (Some(versioned::GET_INTERFACE_INFO), info as *const ()),
    ];
    let interface = if versioned { &interface[..] } else { &[] };
    MethodTable::new(&[interface, methods].concat())
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
