//! `IGpuAllocator`: device memory of engines and contexts comes from the host, under the model in
//! the ledger.

use super::{at, info, logger};
use crate::slots::{self, Version};
use crate::vtable::{InterfaceInfo, MethodTable, Raw};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use trtserver_plugin_api::author::{Device, HostMemory, Memory, Scope, Stream};

/// What `cudaMalloc` guarantees, and the most that TensorRT asks for.
const MAX_ALIGN: u64 = 256;

/// The object that a library is given. It must outlive all engines and contexts that were created
/// with it.
#[repr(C)]
pub struct Allocator {
    table: *const *const (),
    scope: Scope,
    memory: Memory,
    /// The device of an instance; until it is set, memory is freed at once.
    device: OnceLock<Device>,
    live: Mutex<HashMap<usize, HostMemory>>,
}

// SAFETY: the table is constant, the rest is `Sync`.
unsafe impl Send for Allocator {}
// SAFETY: the method table never changes, and all other fields are `Sync`.
unsafe impl Sync for Allocator {}

/// The table of allocators for a library.
pub fn allocator_table(slots: &slots::SlotTable, version: Version) -> &'static MethodTable {
    let class = &slots.gpu_allocator;
    let methods = [
        (at(class.allocate, version), allocate as *const ()),
        (at(class.free, version), free as *const ()),
        (at(class.reallocate, version), reallocate as *const ()),
        (at(class.deallocate, version), deallocate as *const ()),
        (at(class.allocate_async, version), allocate_async as *const ()),
        (at(class.deallocate_async, version), deallocate_async as *const ()),
    ];
    super::build_table(slots.allocators_are_versioned, interface_info, &methods)
}

impl Allocator {
    /// Memory of GPU `device`, for the owner of `scope`.
    pub fn new(table: &'static MethodTable, scope: &Scope, device: i32) -> Box<Allocator> {
        Box::new(Allocator {
            table: table.pointer(),
            scope: scope.clone(),
            memory: Memory::gpu(device),
            device: OnceLock::new(),
            live: Mutex::default(),
        })
    }

    /// From now on memory that was used on a stream is freed behind the work of that stream.
    pub fn order_by(&self, device: &Device) {
        let _ = self.device.set(device.clone());
    }

    pub fn raw(&self) -> Raw {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn allocate(&self, bytes: u64, align: u64, stream: Option<Stream>) -> *mut u8 {
        if bytes == 0 {
            return std::ptr::null_mut();
        }
        let allocated = if align > MAX_ALIGN {
            Err(format!("TensorRT asked for {bytes} bytes of device memory aligned to {align}"))
        } else {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let memory = self.scope.allocate_for(self.memory, bytes, align as usize, stream);
            memory.map_err(|e| e.text().to_owned())
        };
        match allocated {
            Ok(memory) => {
                let address = memory.as_ptr();
                let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
                live.insert(address.addr(), memory);
                address
            }
            Err(reason) => {
                logger::add_exhausted(reason);
                std::ptr::null_mut()
            }
        }
    }

    fn deallocate(&self, memory: *mut u8, stream: Option<Stream>) -> bool {
        let owned = {
            let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            live.remove(&memory.addr())
        };
        let Some(owned) = owned else { return memory.is_null() };
        let behind = self.device.get().zip(stream).and_then(|(device, stream)| {
            let event = device.event().ok()?;
            event.record(stream).ok()?;
            Some(event)
        });
        match behind {
            Some(event) => owned.free_after(event),
            None => drop(owned),
        }
        true
    }
}

/// # Safety
/// `this` is an allocator.
unsafe fn as_allocator<'a>(this: Raw) -> &'a Allocator {
    // SAFETY: by the caller's promise.
    unsafe { &*this.cast::<Allocator>() }
}

/// # Safety
/// `stream` is null or a stream of the device.
unsafe fn to_stream(stream: Raw) -> Option<Stream> {
    // SAFETY: by the caller's promise; TensorRT passes streams that it was given, or created for
    // its own life.
    (!stream.is_null()).then(|| unsafe { Stream::from_raw(stream.cast()) })
}

unsafe extern "C" fn interface_info(_this: Raw) -> InterfaceInfo {
    info(c"IGpuAllocator")
}

unsafe extern "C" fn allocate(this: Raw, bytes: u64, align: u64, _flags: u32) -> Raw {
    // SAFETY: TensorRT calls the methods of an object with the object.
    unsafe { as_allocator(this) }.allocate(bytes, align, None).cast()
}

unsafe extern "C" fn allocate_async(
    this: Raw,
    bytes: u64,
    align: u64,
    _flags: u32,
    stream: Raw,
) -> Raw {
    // SAFETY: TensorRT passes the object whose method this is, and a live stream.
    unsafe { as_allocator(this).allocate(bytes, align, to_stream(stream)) }.cast()
}

/// Null: no memory can be resized.
unsafe extern "C" fn reallocate(_this: Raw, _memory: Raw, _align: u64, _bytes: u64) -> Raw {
    std::ptr::null_mut()
}

unsafe extern "C" fn free(this: Raw, memory: Raw) {
    // SAFETY: TensorRT passes the object whose method this is.
    unsafe { as_allocator(this) }.deallocate(memory.cast(), None);
}

unsafe extern "C" fn deallocate(this: Raw, memory: Raw) -> bool {
    // SAFETY: TensorRT passes the object whose method this is.
    unsafe { as_allocator(this) }.deallocate(memory.cast(), None)
}

unsafe extern "C" fn deallocate_async(this: Raw, memory: Raw, stream: Raw) -> bool {
    // SAFETY: TensorRT passes the object whose method this is, and a live stream.
    unsafe { as_allocator(this).deallocate(memory.cast(), to_stream(stream)) }
}
