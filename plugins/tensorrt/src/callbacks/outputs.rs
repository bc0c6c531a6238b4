//! `IOutputAllocator`: memory for an output whose shape is known only while the engine runs.

use super::{at, info, logger};
use crate::slots::{self, DimsLayout, Version};
use crate::vtable::{Dims32, Dims64, InterfaceInfo, MethodTable, Raw, TensorShape};
use std::ffi::{c_char, c_void};
use trtserver_plugin_api::author::{HostMemory, Memory, Scope, Stream};

/// The object for one output of one execution context. TensorRT calls it during `enqueueV3`, on the
/// thread of that call.
#[repr(C)]
pub struct OutputAllocator {
    table: *const *const (),
    layout: DimsLayout,
    scope: Scope,
    memory: Memory,
    stream: Stream,
    block: Option<HostMemory>,
    shape: Option<TensorShape>,
}

/// The table of output allocators for a library.
pub fn output_allocator_table(slots: &slots::SlotTable, version: Version) -> &'static MethodTable {
    let class = &slots.output_allocator;
    let methods = [
        (at(class.get_interface_version, version), interface_version as *const ()),
        (at(class.reallocate_output, version), reallocate as *const ()),
        (at(class.reallocate_output_async, version), reallocate_async as *const ()),
        (at(class.notify_shape, version), notify_shape as *const ()),
    ];
    super::build_table(slots.allocators_are_versioned, interface_info, &methods)
}

impl OutputAllocator {
    pub fn new(
        table: &'static MethodTable,
        layout: DimsLayout,
        scope: &Scope,
        memory: Memory,
        stream: Stream,
    ) -> Box<OutputAllocator> {
        Box::new(OutputAllocator {
            table: table.pointer(),
            layout,
            scope: scope.clone(),
            memory,
            stream,
            block: None,
            shape: None,
        })
    }

    pub fn raw(&mut self) -> Raw {
        std::ptr::from_mut(self).cast()
    }

    /// Forgets the previous run.
    pub fn begin(&mut self) {
        (self.block, self.shape) = (None, None);
    }

    /// Memory and shape of the run that was enqueued last.
    pub fn take(&mut self) -> (Option<HostMemory>, Option<TensorShape>) {
        (self.block.take(), self.shape.take())
    }

    fn allocate(&mut self, bytes: u64, align: u64) -> *mut u8 {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(1);
        if let Some(block) = self.block.as_ref().filter(|block| block.len() >= bytes) {
            return block.as_ptr();
        }
        let align = usize::try_from(align).unwrap_or(usize::MAX);
        match self.scope.allocate_for(self.memory, bytes, align, Some(self.stream)) {
            Ok(block) => self.block.insert(block).as_ptr(),
            Err(e) => {
                logger::add_exhausted(e.text().to_owned());
                std::ptr::null_mut()
            }
        }
    }
}

/// # Safety
/// `this` is an output allocator, which nothing else uses during the call.
unsafe fn as_output_allocator<'a>(this: Raw) -> &'a mut OutputAllocator {
    // SAFETY: by the caller's promise.
    unsafe { &mut *this.cast::<OutputAllocator>() }
}

unsafe extern "C" fn interface_info(_this: Raw) -> InterfaceInfo {
    info(c"IOutputAllocator")
}

unsafe extern "C" fn interface_version(_this: Raw) -> i32 {
    1
}

unsafe extern "C" fn reallocate(
    this: Raw,
    _name: *const c_char,
    _current: Raw,
    bytes: u64,
    align: u64,
) -> Raw {
    // SAFETY: TensorRT calls the methods of an object with the object, on the thread that enqueues.
    unsafe { as_output_allocator(this) }.allocate(bytes, align).cast()
}

unsafe extern "C" fn reallocate_async(
    this: Raw,
    name: *const c_char,
    current: Raw,
    bytes: u64,
    align: u64,
    _stream: Raw,
) -> Raw {
    // SAFETY: TensorRT passes the object whose method this is, on the thread that enqueues.
    unsafe { reallocate(this, name, current, bytes, align) }
}

unsafe extern "C" fn notify_shape(this: Raw, _name: *const c_char, dims: *const c_void) {
    // SAFETY: TensorRT passes the object whose method this is, on the thread that enqueues. The
    // dimensions have the layout of the library and are valid during the call.
    unsafe {
        let this = as_output_allocator(this);
        this.shape = match this.layout {
            DimsLayout::Int32 => (*dims.cast::<Dims32>()).into(),
            DimsLayout::Int64 => (*dims.cast::<Dims64>()).into(),
        };
    }
}
