//! An execution context: one optimisation profile of an engine, the shapes and addresses of a run,
//! and `enqueueV3`.

use crate::callbacks::logger;
use crate::callbacks::outputs::OutputAllocator;
use crate::engine::Engine;
use crate::slots::{DimsLayout, Method};
use crate::vtable::{self, Dims32, Dims64, Raw, TensorShape, find_slot, method_entry};
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use trtserver_plugin_api::author::{Device, Stream};

/// The methods of a run, looked up once.
struct Calls {
    set_input_shape: unsafe extern "C" fn(Raw, *const c_char, *const c_void) -> bool,
    tensor_shape: Raw,
    set_address: unsafe extern "C" fn(Raw, *const c_char, *mut c_void) -> bool,
    set_output_allocator: unsafe extern "C" fn(Raw, *const c_char, Raw) -> bool,
    enqueue: unsafe extern "C" fn(Raw, Raw) -> bool,
}

/// Used by one thread at a time.
pub struct ExecutionContext {
    engine: Arc<Engine>,
    raw: Raw,
    object: Raw,
    calls: Calls,
    layout: DimsLayout,
}

impl ExecutionContext {
    /// Creates a context with a profile, for work on the compute stream of the device.
    ///
    /// # Errors
    /// The reasons that TensorRT logged.
    pub fn new(
        engine: &Arc<Engine>,
        device: &Device,
        profile: usize,
    ) -> Result<ExecutionContext, String> {
        let raw = engine.create_context(device)?;
        // SAFETY: a context of this library.
        let object = unsafe { vtable::api_implementation(raw) };
        let class = &engine.library.slots.context;
        let (version, layout) = (engine.library.version, engine.library.slots.dims);
        let slot = |method: Method, name: &str| find_slot(method, name, version);
        let calls = || {
            // SAFETY: the methods have these types in every major.
            Ok::<Calls, String>(unsafe {
                Calls {
                    set_input_shape: method_entry(
                        object,
                        slot(class.set_input_shape, "setInputShape")?,
                    ),
                    tensor_shape: method_entry(
                        object,
                        slot(class.get_tensor_shape, "getTensorShape")?,
                    ),
                    set_address: method_entry(
                        object,
                        slot(class.set_tensor_address, "setTensorAddress")?,
                    ),
                    set_output_allocator: method_entry(
                        object,
                        slot(class.set_output_allocator, "setOutputAllocator")?,
                    ),
                    enqueue: method_entry(object, slot(class.enqueue_v3, "enqueueV3")?),
                }
            })
        };
        let calls = match calls() {
            Ok(calls) => calls,
            Err(lacks) => {
                // SAFETY: created above, not used again.
                unsafe { vtable::delete_api(raw) };
                return Err(lacks);
            }
        };
        let context = ExecutionContext { engine: Arc::clone(engine), raw, object, calls, layout };
        context.set_temporary_allocator()?;
        if engine.implicit_batch.is_none() {
            context.set_profile(profile, device.stream())?;
        }
        Ok(context)
    }

    fn set_temporary_allocator(&self) -> Result<(), String> {
        let method = self.engine.library.slots.context.set_temporary_storage_allocator;
        let slot = find_slot(method, "setTemporaryStorageAllocator", self.engine.library.version)?;
        logger::clear_errors();
        // SAFETY: the allocator lives as long as the engine, which this context holds.
        done(unsafe {
            let set: unsafe extern "C" fn(Raw, Raw) -> bool = method_entry(self.object, slot);
            set(self.object, self.engine.allocator())
        })
    }

    fn set_profile(&self, profile: usize, stream: Stream) -> Result<(), String> {
        let method = self.engine.library.slots.context.set_optimization_profile_async;
        let slot = find_slot(method, "setOptimizationProfileAsync", self.engine.library.version)?;
        logger::clear_errors();
        // SAFETY: a stream of the device.
        done(unsafe {
            let set: unsafe extern "C" fn(Raw, i32, Raw) -> bool = method_entry(self.object, slot);
            set(self.object, profile as i32, stream.as_raw().cast())
        })
        .map_err(|reason| format!("optimisation profile {profile}: {reason}"))
    }

    pub fn set_input_shape(&self, name: &CStr, shape: TensorShape) -> Result<(), String> {
        let (set, name) = (self.calls.set_input_shape, name.as_ptr());
        // SAFETY: name and dimensions are valid during the call; the layout is that of the
        // library's major.
        done(unsafe {
            match self.layout {
                DimsLayout::Int32 => {
                    let dims = shape.to_32().ok_or("a dimension exceeds 2^31 - 1")?;
                    set(self.object, name, (&raw const dims).cast())
                }
                DimsLayout::Int64 => {
                    let dims = shape.to_64();
                    set(self.object, name, (&raw const dims).cast())
                }
            }
        })
    }

    /// The shape of a tensor after those of all inputs were set; with -1 where only the run
    /// decides.
    pub fn tensor_shape(&self, name: &CStr) -> Option<TensorShape> {
        let (get, name) = (self.calls.tensor_shape, name.as_ptr());
        // SAFETY: takes a name, returns dimensions in the layout of the library's major.
        unsafe {
            match self.layout {
                DimsLayout::Int32 => {
                    type Get = unsafe extern "C" fn(Raw, *const c_char) -> Dims32;
                    std::mem::transmute::<Raw, Get>(get)(self.object, name).into()
                }
                DimsLayout::Int64 => {
                    type Get = unsafe extern "C" fn(Raw, *const c_char) -> Dims64;
                    std::mem::transmute::<Raw, Get>(get)(self.object, name).into()
                }
            }
        }
    }

    /// Computes shapes that depend on the values of shape tensors, whose addresses are set.
    pub fn infer_shapes(&self) -> Result<(), String> {
        type Infer = unsafe extern "C" fn(Raw, i32, *mut *const c_char) -> i32;
        let method = self.engine.library.slots.context.infer_shapes;
        let slot = find_slot(method, "inferShapes", self.engine.library.version)?;
        // SAFETY: the method has this type; no names are asked for.
        let missing = unsafe {
            let infer: Infer = method_entry(self.object, slot);
            infer(self.object, 0, std::ptr::null_mut())
        };
        match missing {
            0 => Ok(()),
            1.. => Err(format!("the shapes of {missing} tensors are not specified")),
            _ => done(false),
        }
    }

    /// # Safety
    /// The memory has the size of the tensor and is valid until the run is done; on the device, or
    /// for tensors on the host in CPU memory.
    pub unsafe fn set_address(&self, name: &CStr, at: *mut u8) -> Result<(), String> {
        // SAFETY: by the caller's promise.
        done(unsafe { (self.calls.set_address)(self.object, name.as_ptr(), at.cast()) })
    }

    /// # Safety
    /// The allocator stays where it is as long as the context exists.
    pub unsafe fn set_output_allocator(
        &self,
        name: &CStr,
        allocator: &mut OutputAllocator,
    ) -> Result<(), String> {
        logger::clear_errors();
        let set = self.calls.set_output_allocator;
        // SAFETY: by the caller's promise.
        done(unsafe { set(self.object, name.as_ptr(), allocator.raw()) })
    }

    /// Queues a run on the stream.
    ///
    /// # Safety
    /// All tensors have addresses that are valid until the run is done.
    pub unsafe fn enqueue(&self, stream: Stream) -> Result<(), String> {
        logger::clear_errors();
        // SAFETY: by the caller's promise.
        done(unsafe { (self.calls.enqueue)(self.object, stream.as_raw().cast()) })
    }

    /// Queues a run of an engine with implicit batch dimension.
    ///
    /// # Safety
    /// `bindings` has an address for each binding of the engine, valid until the run is done.
    pub unsafe fn enqueue_batch(
        &self,
        rows: usize,
        bindings: &[*mut u8],
        stream: Stream,
    ) -> Result<(), String> {
        type Enqueue = unsafe extern "C" fn(Raw, i32, *const *mut u8, Raw, Raw) -> bool;
        let method = self.engine.library.slots.context.enqueue;
        let slot = find_slot(method, "enqueue", self.engine.library.version)?;
        logger::clear_errors();
        let (rows, stream) = (rows as i32, stream.as_raw().cast());
        // SAFETY: by the caller's promise.
        done(unsafe {
            let enqueue: Enqueue = method_entry(self.object, slot);
            enqueue(self.object, rows, bindings.as_ptr(), stream, std::ptr::null_mut())
        })
    }
}

impl Drop for ExecutionContext {
    fn drop(&mut self) {
        // SAFETY: not used afterwards; the engine is deleted later.
        unsafe { vtable::delete_api(self.raw) }
    }
}

/// The result of a method that returns whether it succeeded.
fn done(succeeded: bool) -> Result<(), String> {
    if succeeded {
        return Ok(());
    }
    Err(logger::take_errors().unwrap_or_else(|| "TensorRT failed without a reason".to_owned()))
}
