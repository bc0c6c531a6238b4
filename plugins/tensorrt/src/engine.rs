//! An engine on one device: deserialized from a plan, and what it declares.

use crate::callbacks::allocator::Allocator;
use crate::callbacks::logger;
use crate::library::Library;
use crate::profile::{Profile, Range};
use crate::slots::{DimsLayout, Method};
use crate::tensors::EngineTensor;
use crate::types;
use crate::vtable::{self, Dims32, Dims64, Raw, TensorShape, find_slot, method_entry};
use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};
use trtserver_framework::search::read_c_text;
use trtserver_plugin_api::author::{Device, Scope};

/// `OptProfileSelector`: minimum, optimum, maximum.
const SELECTORS: [i32; 3] = [0, 1, 2];
/// `TensorIOMode::kINPUT`, `TensorLocation::kHOST`.
const INPUT: i32 = 1;
const HOST: i32 = 1;

pub struct Engine {
    pub library: &'static Library,
    /// CUDA ordinal.
    pub device: i32,
    /// In the order of the engine.
    pub tensors: Vec<EngineTensor>,
    pub profiles: Vec<Profile>,
    /// The largest batch of an engine whose batch dimension is implicit.
    pub implicit_batch: Option<usize>,
    /// Bindings of such an engine.
    pub bindings: usize,
    runtime: Raw,
    raw: Raw,
    allocator: Box<Allocator>,
    /// Creating contexts is not documented as safe on several threads.
    creating: Mutex<()>,
}

// SAFETY: TensorRT allows the constant methods of an engine on any thread; the others are called
// under `creating`.
unsafe impl Send for Engine {}
// SAFETY: threads that share an engine call its constant methods, or others one at a time under
// `creating`.
unsafe impl Sync for Engine {}

/// How a plan is deserialized.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The plan may contain host code.
    pub allow_host_code: bool,
}

impl Engine {
    /// Deserializes a plan for a device, whose context is current.
    ///
    /// # Errors
    /// The reasons that TensorRT logged.
    pub fn deserialize(
        library: &'static Library,
        plan: &[u8],
        scope: &Scope,
        device: i32,
        options: Options,
    ) -> Result<Engine, String> {
        let runtime = library.create_runtime().map_err(|fault| fault.text)?;
        let allocator = Allocator::new(library.allocators, scope, device);
        let mut engine = Engine {
            library,
            device,
            tensors: Vec::new(),
            profiles: Vec::new(),
            implicit_batch: None,
            bindings: 0,
            runtime,
            raw: null_mut(),
            allocator,
            creating: Mutex::default(),
        };
        engine.prepare_runtime(options)?;
        engine.raw = engine.deserialized(plan)?;
        engine.read()?;
        Ok(engine)
    }

    fn prepare_runtime(&self, options: Options) -> Result<(), String> {
        let (class, version) = (&self.library.slots.runtime, self.library.version);
        // SAFETY: a runtime of this library, whose methods have these types.
        unsafe {
            let object = vtable::api_implementation(self.runtime);
            let slot = find_slot(class.set_gpu_allocator, "setGpuAllocator", version)?;
            method_entry::<unsafe extern "C" fn(Raw, Raw)>(object, slot)(
                object,
                self.allocator.raw(),
            );
            if options.allow_host_code {
                let method = class.set_engine_host_code_allowed;
                let slot = find_slot(method, "setEngineHostCodeAllowed", version)?;
                method_entry::<unsafe extern "C" fn(Raw, bool)>(object, slot)(object, true);
            }
        }
        Ok(())
    }

    fn deserialized(&self, plan: &[u8]) -> Result<Raw, String> {
        let slots = self.library.slots;
        let method = slots.runtime.deserialize_cuda_engine;
        let slot = find_slot(method, "deserializeCudaEngine", self.library.version)?;
        logger::clear_errors();
        let (bytes, len) = (plan.as_ptr().cast_mut().cast(), plan.len());
        // SAFETY: the runtime is one of this library, whose methods have these types; the plan is
        // read during the call.
        let engine = unsafe {
            let object = vtable::api_implementation(self.runtime);
            if slots.deserialize_has_factory {
                type Deserialize = unsafe extern "C" fn(Raw, Raw, usize, Raw) -> Raw;
                method_entry::<Deserialize>(object, slot)(object, bytes, len, null_mut())
            } else {
                type Deserialize = unsafe extern "C" fn(Raw, Raw, usize) -> Raw;
                method_entry::<Deserialize>(object, slot)(object, bytes, len)
            }
        };
        if engine.is_null() {
            return Err(logger::take_errors()
                .unwrap_or_else(|| "TensorRT refused it without a reason".to_owned()));
        }
        Ok(engine)
    }

    fn read(&mut self) -> Result<(), String> {
        let class = &self.library.slots.engine;
        let flag = |method: Method, name| match method.slot(self.library.version) {
            // SAFETY: the method has this type.
            Some(_) => unsafe { self.number::<bool>(method, name) },
            None => Ok(false),
        };
        // SAFETY: the methods have these types.
        unsafe {
            if flag(class.has_implicit_batch_dimension, "hasImplicitBatchDimension")? {
                let max = self.number::<i32>(class.get_max_batch_size, "getMaxBatchSize")?;
                self.implicit_batch = Some(usize::try_from(max).unwrap_or(0));
                let bindings = self.number::<i32>(class.get_nb_bindings, "getNbBindings")?;
                self.bindings = usize::try_from(bindings).unwrap_or(0);
            }
            let count = self.number::<i32>(class.get_nb_io_tensors, "getNbIOTensors")?;
            self.tensors = (0..count).map(|i| self.tensor(i)).collect::<Result<_, _>>()?;
            let method = class.get_nb_optimization_profiles;
            let profiles = self.number::<i32>(method, "getNbOptimizationProfiles")?;
            self.profiles =
                (0..profiles.max(1)).map(|i| self.profile(i)).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    fn tensor(&self, index: i32) -> Result<EngineTensor, String> {
        let class = &self.library.slots.engine;
        let object = self.object();
        let slot = find_slot(class.get_io_tensor_name, "getIOTensorName", self.library.version)?;
        // SAFETY: the index is below the count; the name is valid as long as the engine, and
        // copied.
        let name = unsafe {
            let name: unsafe extern "C" fn(Raw, i32) -> *const c_char = method_entry(object, slot);
            read_c_text(name(object, index))
        };
        let c_name = CString::new(name.as_bytes()).map_err(|_| "a tensor name with a NUL byte")?;
        let of = |method: Method, what: &str| {
            let slot = find_slot(method, what, self.library.version)?;
            // SAFETY: these methods take a name and return a number.
            Ok::<i32, String>(unsafe {
                let f: unsafe extern "C" fn(Raw, *const c_char) -> i32 = method_entry(object, slot);
                f(object, c_name.as_ptr())
            })
        };
        let slot =
            find_slot(class.is_shape_inference_io, "isShapeInferenceIO", self.library.version)?;
        // SAFETY: takes a name and returns a truth value.
        let is_shape = unsafe {
            let f: unsafe extern "C" fn(Raw, *const c_char) -> bool = method_entry(object, slot);
            f(object, c_name.as_ptr())
        };
        let on_host = of(class.get_tensor_location, "getTensorLocation")? == HOST;
        if is_shape && !on_host {
            return Err(format!(
                "shape tensor '{name}' is in GPU memory; only shape tensors in CPU memory are supported"
            ));
        }
        let binding = match self.implicit_batch {
            Some(_) => of(class.get_binding_index, "getBindingIndex")?,
            None => 0,
        };
        // SAFETY: takes a name and returns dimensions.
        let shape = unsafe { self.dims(class.get_tensor_shape, "getTensorShape", &c_name, None)? };
        let shape = shape.ok_or_else(|| format!("tensor '{name}' has no shape"))?;
        Ok(EngineTensor {
            is_input: of(class.get_tensor_io_mode, "getTensorIOMode")? == INPUT,
            kind: of(class.get_tensor_data_type, "getTensorDataType")?,
            format: of(class.get_tensor_format, "getTensorFormat")?,
            // The host keeps shape tensors alone in CPU memory.
            is_shape: on_host,
            binding: usize::try_from(binding).unwrap_or(0),
            shape,
            c_name,
            name,
        })
    }

    fn profile(&self, index: i32) -> Result<Profile, String> {
        let inputs = self.tensors.iter().filter(|tensor| tensor.is_input);
        let ranges = inputs.map(|tensor| {
            if self.implicit_batch.is_some() {
                return Ok((tensor.name.clone(), Range::fixed(tensor.shape)));
            }
            let class = &self.library.slots.engine;
            let shape = |selector| {
                let (name, at) = (&tensor.c_name, Some((index, selector)));
                // SAFETY: takes a name, a profile and a selector, and returns dimensions.
                let dims =
                    unsafe { self.dims(class.get_profile_shape, "getProfileShape", name, at)? };
                Ok::<TensorShape, String>(dims.unwrap_or(tensor.shape))
            };
            let [min, opt, max] = SELECTORS.map(shape);
            let values = match tensor.is_shape {
                true => self.shape_values(tensor, index),
                false => None,
            };
            Ok((tensor.name.clone(), Range { min: min?, opt: opt?, max: max?, values }))
        });
        Ok(Profile { ranges: ranges.collect::<Result<_, String>>()? })
    }

    /// Minimum and maximum of the values of a shape tensor; `None` where the library does not tell.
    fn shape_values(&self, tensor: &EngineTensor, profile: i32) -> Option<[Vec<i64>; 2]> {
        let (class, version) = (&self.library.slots.engine, self.library.version);
        let count = tensor.shape.dims().iter().product::<i64>();
        let count = usize::try_from(count).ok().filter(|n| (1..=vtable::MAX_DIMS).contains(n))?;
        let object = self.object();
        let name = tensor.c_name.as_ptr();
        let values = |selector: i32| {
            // SAFETY: the methods have these types; the values are valid as long as the engine, and
            // copied.
            unsafe {
                if let Some(slot) = class.get_profile_tensor_values_v2.slot(version) {
                    type Get = unsafe extern "C" fn(Raw, *const c_char, i32, i32) -> *const i64;
                    let at = method_entry::<Get>(object, slot)(object, name, profile, selector);
                    return (!at.is_null()).then(|| std::slice::from_raw_parts(at, count).to_vec());
                }
                let at = if let Some(slot) = class.get_profile_tensor_values.slot(version) {
                    type Get = unsafe extern "C" fn(Raw, *const c_char, i32, i32) -> *const i32;
                    method_entry::<Get>(object, slot)(object, name, profile, selector)
                } else {
                    let slot = class.get_profile_shape_values.slot(version)?;
                    let of = find_slot(class.get_binding_index, "getBindingIndex", version).ok()?;
                    type Index = unsafe extern "C" fn(Raw, *const c_char) -> i32;
                    let binding = method_entry::<Index>(object, of)(object, name);
                    type Get = unsafe extern "C" fn(Raw, i32, i32, i32) -> *const i32;
                    method_entry::<Get>(object, slot)(object, profile, binding, selector)
                };
                let narrow = (!at.is_null()).then(|| std::slice::from_raw_parts(at, count))?;
                Some(narrow.iter().copied().map(i64::from).collect())
            }
        };
        // 64-bit values are not returned by the function for 32 bits.
        if tensor.kind == types::INT64 && class.get_profile_tensor_values_v2.slot(version).is_none()
        {
            return None;
        }
        Some([values(SELECTORS[0])?, values(SELECTORS[2])?])
    }

    /// # Safety
    /// The method takes a name, and with `profile` two numbers, and returns `Dims`.
    unsafe fn dims(
        &self,
        method: Method,
        what: &str,
        name: &CStr,
        profile: Option<(i32, i32)>,
    ) -> Result<Option<TensorShape>, String> {
        let slot = find_slot(method, what, self.library.version)?;
        let (object, name) = (self.object(), name.as_ptr());
        // SAFETY: by the caller's promise; the layout is that of the library's major.
        Ok(unsafe {
            match (self.library.slots.dims, profile) {
                (DimsLayout::Int32, None) => {
                    type Get = unsafe extern "C" fn(Raw, *const c_char) -> Dims32;
                    method_entry::<Get>(object, slot)(object, name).into()
                }
                (DimsLayout::Int64, None) => {
                    type Get = unsafe extern "C" fn(Raw, *const c_char) -> Dims64;
                    method_entry::<Get>(object, slot)(object, name).into()
                }
                (DimsLayout::Int32, Some((index, selector))) => {
                    type Get = unsafe extern "C" fn(Raw, *const c_char, i32, i32) -> Dims32;
                    method_entry::<Get>(object, slot)(object, name, index, selector).into()
                }
                (DimsLayout::Int64, Some((index, selector))) => {
                    type Get = unsafe extern "C" fn(Raw, *const c_char, i32, i32) -> Dims64;
                    method_entry::<Get>(object, slot)(object, name, index, selector).into()
                }
            }
        })
    }

    /// # Safety
    /// The method takes nothing and returns `T`.
    unsafe fn number<T>(&self, method: Method, what: &str) -> Result<T, String> {
        let slot = find_slot(method, what, self.library.version)?;
        let object = self.object();
        // SAFETY: by the caller's promise.
        Ok(unsafe { method_entry::<unsafe extern "C" fn(Raw) -> T>(object, slot)(object) })
    }

    /// Whether its weights can be replaced.
    pub fn is_refittable(&self) -> Result<bool, String> {
        // SAFETY: the method has this type.
        unsafe { self.number(self.library.slots.engine.is_refittable, "isRefittable") }
    }

    /// The object of the API.
    pub fn raw(&self) -> Raw {
        self.raw
    }

    /// The object that methods are called on.
    pub fn object(&self) -> Raw {
        // SAFETY: an engine of this library.
        unsafe { vtable::api_implementation(self.raw) }
    }

    /// Creates an execution context, with the context of the device current.
    ///
    /// # Errors
    /// The reasons that TensorRT logged, such as too little device memory.
    pub fn create_context(&self, device: &Device) -> Result<Raw, String> {
        use crate::slots::ContextCreation;
        let slots = self.library.slots;
        let method = slots.engine.create_execution_context;
        let slot = find_slot(method, "createExecutionContext", self.library.version)?;
        self.allocator.order_by(device);
        let _alone = self.creating.lock().unwrap_or_else(PoisonError::into_inner);
        logger::clear_errors();
        let object = self.object();
        // SAFETY: the method has this type in the library's major.
        let context = unsafe {
            match slots.context_creation {
                ContextCreation::Plain => {
                    method_entry::<unsafe extern "C" fn(Raw) -> Raw>(object, slot)(object)
                }
                ContextCreation::WithStrategy => {
                    /// `ExecutionContextAllocationStrategy::kSTATIC`.
                    const STATIC: i32 = 0;
                    method_entry::<unsafe extern "C" fn(Raw, i32) -> Raw>(object, slot)(
                        object, STATIC,
                    )
                }
            }
        };
        if context.is_null() {
            return Err(logger::take_errors()
                .unwrap_or_else(|| "TensorRT created no execution context".to_owned()));
        }
        Ok(context)
    }

    /// Device memory of the host, for what contexts allocate while they run.
    pub fn allocator(&self) -> Raw {
        self.allocator.raw()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: contexts hold the engine, so none is left; neither object is used afterwards.
        let delete = || unsafe {
            if !self.raw.is_null() {
                vtable::delete_api(self.raw);
            }
            vtable::delete_api(self.runtime);
        };
        // The thread that closes a model has no context.
        let deleted =
            crate::driver::cuda_driver().and_then(|driver| driver.on_device(self.device, delete));
        if let Err(reason) = deleted {
            let text = format!("an engine on GPU {} is not freed: {reason}", self.device);
            trtserver_framework::log::write_line(
                trtserver_plugin_api::abi::types::level::WARNING,
                &text,
            );
        }
    }
}
