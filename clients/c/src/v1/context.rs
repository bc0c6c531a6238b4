//! `trtc_v1_context`: creation, the model, the stateful inputs and options, and the one-call request.

use super::result::V1Result;
use crate::arguments::{array, deadline, optional_text, result, structure, text};
use crate::failure::{ErrorObject, Failure, Outcome, c_string, call, quiet};
use crate::handle::{Handle, Object};
use crate::settings::{RawSettings, settings};
use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trtserver_client::blocking::{self, v1::Context};
use trtserver_client::v1::{ContextOptions, DataType, Input, Model, OutputFormat, Run, RunOptions};

type Error = Handle<ErrorObject>;

pub struct V1Context {
    context: Context,
    /// Of requests that give none.
    deadline: Duration,
    /// What the stateful form has set.
    stateful: Mutex<Request>,
    model: ModelObject,
}

impl Object for V1Context {
    const NAME: &'static str = "v1 context";
}

/// A request, and the names of the outputs that it asks for.
struct Request {
    run: Run,
    order: Vec<String>,
}

impl Request {
    fn set_options(&mut self, options: &RunOptions) -> Outcome<()> {
        self.run.set_options(options)?;
        self.order = options.outputs.iter().map(|(name, _)| name.clone()).collect();
        Ok(())
    }
}

impl V1Context {
    fn stateful(&self) -> MutexGuard<'_, Request> {
        self.stateful.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limit(&self, deadline_us: u64) -> Option<Duration> {
        match deadline(deadline_us) {
            Some(limit) => Some(limit.unwrap_or(Duration::MAX)),
            None => Some(self.deadline),
        }
    }

    /// Calls `change` with an input of the stateful form.
    fn change<T>(
        &self,
        index: usize,
        change: impl FnOnce(&mut Input) -> trtserver_client::Result<T>,
    ) -> Outcome<T> {
        let mut request = self.stateful();
        let count = request.run.inputs().len();
        let input = request.run.inputs_mut().get_mut(index).ok_or_else(|| {
            Failure::argument(format!(
                "input {index} of model '{}' does not exist, it has {count} inputs",
                self.context.model().name
            ))
        })?;
        Ok(change(input)?)
    }

    /// Sends a request and waits.
    fn finish(&self, request: &Request) -> Outcome<Handle<V1Result>> {
        let results = self.context.run(&request.run)?;
        Ok(Handle::new(Arc::new(V1Result::new(results, &request.order))))
    }

    /// Sends a request; the callback, or a later call, gets the result.
    fn start(
        &self,
        request: &Request,
        flags: u32,
        callback: Option<Callback>,
        user: User,
    ) -> Outcome<u64> {
        let order = request.order.clone();
        let deliver = callback.map(|callback| -> blocking::v1::Callback {
            Box::new(move |id, results| {
                // The structure, not its field, is what may be sent to another thread.
                let user = user;
                let (error, result) = match results {
                    Ok(results) => {
                        (Handle::NULL, Handle::new(Arc::new(V1Result::new(results, &order))))
                    }
                    Err(error) => (ErrorObject::handle(&Failure::Client(error)), Handle::NULL),
                };
                // SAFETY: the caller gave a function of this type, with what it is called with.
                unsafe { callback(user.0, id, error, result) };
            })
        });
        if flags & COPY_INPUTS == 0 {
            return Ok(self.context.run_async(&request.run, deliver)?);
        }
        let mut copy = request.run.clone();
        for input in copy.inputs_mut() {
            // SAFETY: what the caller has set is valid now.
            unsafe { input.copy_borrowed() };
        }
        Ok(self.context.run_async(&copy, deliver)?)
    }
}

type Callback =
    unsafe extern "C" fn(user: *mut c_void, id: u64, error: Error, result: Handle<V1Result>);

/// What a callback is called with. The caller answers for its use on the callback thread.
#[derive(Clone, Copy)]
struct User(*mut c_void);

// SAFETY: only passed on.
unsafe impl Send for User {}

#[repr(C)]
struct RawTensor {
    name: *const c_char,
    dims: *const i64,
    dim_count: usize,
    data_type: i32,
    format: i32,
    is_shape_tensor: bool,
    byte_size: i64,
}

#[repr(C)]
pub struct RawModel {
    name: *const c_char,
    version: i64,
    correlation_id: u64,
    max_batch_size: u64,
    inputs: *const RawTensor,
    input_count: usize,
    outputs: *const RawTensor,
    output_count: usize,
    config: *const u8,
    config_size: usize,
}

/// `trtc_v1_model` and what it points to.
struct ModelObject {
    raw: RawModel,
    _model: Arc<Model>,
    _names: Vec<CString>,
    _tensors: [Vec<RawTensor>; 2],
    _config: Vec<u8>,
}

// SAFETY: the pointers lead to parts of the object, which do not change.
unsafe impl Send for ModelObject {}
// SAFETY: as above.
unsafe impl Sync for ModelObject {}

impl ModelObject {
    fn new(model: &Arc<Model>, correlation_id: u64) -> Self {
        let mut names = vec![c_string(&model.name)];
        let byte_size = |kind: DataType, dims: &[i64]| {
            let name = kind.as_str_name().trim_start_matches("TYPE_");
            let size = trtserver_client::tensor::byte_size(name, dims);
            size.and_then(|size| i64::try_from(size).ok()).unwrap_or(-1)
        };
        let mut tensor = |name: &str, dims: &[i64], kind: DataType, format: i32, is_shape: bool| {
            names.push(c_string(name));
            RawTensor {
                name: names.last().map_or(std::ptr::null(), |name| name.as_ptr()),
                dims: dims.as_ptr(),
                dim_count: dims.len(),
                data_type: kind as i32,
                format,
                is_shape_tensor: is_shape,
                byte_size: byte_size(kind, dims),
            }
        };
        let of_input = model.inputs().iter();
        let inputs: Vec<_> = of_input
            .map(|i| tensor(&i.name, &i.dims, i.data_type(), i.format, i.is_shape_tensor))
            .collect();
        let of_output = model.outputs().iter();
        let outputs: Vec<_> = of_output
            .map(|o| tensor(&o.name, &o.dims, o.data_type(), 0, o.is_shape_tensor))
            .collect();
        let config = prost::Message::encode_to_vec(&model.config);
        let raw = RawModel {
            name: names[0].as_ptr(),
            version: model.version,
            correlation_id,
            max_batch_size: model.max_batch_size,
            inputs: inputs.as_ptr(),
            input_count: inputs.len(),
            outputs: outputs.as_ptr(),
            output_count: outputs.len(),
            config: config.as_ptr(),
            config_size: config.len(),
        };
        Self {
            raw,
            _model: model.clone(),
            _names: names,
            _tensors: [inputs, outputs],
            _config: config,
        }
    }
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_context_new(
    raw: *const RawSettings,
    model: *const c_char,
    version: i64,
    correlation_id: u64,
    streaming: bool,
    deadline_us: u64,
    context: *mut Handle<V1Context>,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (mut settings, model, place) = unsafe {
            (settings(raw)?, text(model, "the model's name")?, result(context, "context")?)
        };
        let options =
            ContextOptions { version, correlation_id, streaming, ..ContextOptions::new(model) };
        let usual = settings.deadline.unwrap_or(Duration::MAX);
        if let Some(deadline) = deadline(deadline_us) {
            settings.deadline = deadline;
        }
        let context = Context::new(&settings, &options)?;
        place.write(Handle::new(Arc::new(V1Context {
            deadline: usual,
            stateful: Mutex::new(Request { run: context.new_run(), order: Vec::new() }),
            model: ModelObject::new(context.model(), correlation_id),
            context,
        })));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_context_free(context: Handle<V1Context>) {
    // Dropping it waits for the callbacks.
    quiet((), || drop(context.release()));
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_context_model(
    context: Handle<V1Context>,
    model: *mut *const RawModel,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result(model, "model") }?;
        place.write(&raw const context.get()?.model.raw);
        Ok(())
    })
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawRequestedOutput {
    name: *const c_char,
    class_count: u64,
    region: *const c_char,
    region_offset: u64,
    region_byte_size: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawOptions {
    struct_size: usize,
    batch_size: u64,
    flags: u32,
    priority: u32,
    timeout_us: u64,
    correlation_id: u64,
    outputs: *const RawRequestedOutput,
    output_count: usize,
}

/// # Safety
/// `raw` is NULL or points to options as the header describes them.
unsafe fn options(raw: *const RawOptions) -> Outcome<RunOptions> {
    // SAFETY: the contract of this function.
    let raw = unsafe { structure(raw, "options") }?;
    // SAFETY: as above.
    let requested = unsafe { array(raw.outputs, raw.output_count, "outputs") }?;
    let output = |output: &RawRequestedOutput| {
        // SAFETY: as above.
        let (name, region) = unsafe {
            (
                text(output.name, "an output's name")?,
                optional_text(output.region, "a region's name")?,
            )
        };
        let format = match (region, output.class_count) {
            (Some(_), 1..) => {
                return Err(Failure::argument(format!(
                    "output '{name}' is requested as classes and in shared memory, expected one of both"
                )));
            }
            (Some(region), 0) => OutputFormat::SharedMemory {
                region: region.to_owned(),
                offset: output.region_offset,
                byte_size: output.region_byte_size,
            },
            (None, 0) => OutputFormat::Raw,
            (None, count) => OutputFormat::Class(u32::try_from(count).unwrap_or(u32::MAX)),
        };
        Ok((name.to_owned(), format))
    };
    Ok(RunOptions {
        batch_size: raw.batch_size,
        flags: raw.flags,
        correlation_id: raw.correlation_id,
        outputs: requested.iter().map(output).collect::<Outcome<_>>()?,
        priority: raw.priority,
        timeout_us: raw.timeout_us,
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_set_options(
    context: Handle<V1Context>,
    raw: *const RawOptions,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let options = unsafe { options(raw) }?;
        context.get()?.stateful().set_options(&options)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_input_reset(context: Handle<V1Context>, input: usize) -> Error {
    call(|| {
        context.get()?.change(input, |input| {
            input.reset();
            Ok(())
        })
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_set_shape(
    context: Handle<V1Context>,
    input: usize,
    dims: *const i64,
    count: usize,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let dims = unsafe { array(dims, count, "dims") }?;
        context.get()?.change(input, |input| input.set_shape(dims))
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_add_data(
    context: Handle<V1Context>,
    input: usize,
    data: *const u8,
    size: usize,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let data = unsafe { array(data, size, "data") }?;
        // SAFETY: as above: the memory is unchanged until the input is reset.
        context
            .get()?
            .change(input, |input| unsafe { input.set_borrowed(data.as_ptr(), data.len()) })
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_add_strings(
    context: Handle<V1Context>,
    input: usize,
    strings: *const *const u8,
    sizes: *const usize,
    count: usize,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (strings, sizes) =
            unsafe { (array(strings, count, "strings")?, array(sizes, count, "sizes")?) };
        let pairs = strings.iter().zip(sizes);
        // SAFETY: as above.
        let strings = pairs.map(|(text, size)| unsafe { array(*text, *size, "a string") });
        let strings = strings.collect::<Outcome<Vec<_>>>()?;
        context.get()?.change(input, |input| input.set_strings(&strings))
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_set_region(
    context: Handle<V1Context>,
    input: usize,
    region: *const c_char,
    offset: u64,
    byte_size: u64,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let region = unsafe { text(region, "the region's name") }?;
        context.get()?.change(input, |input| input.set_shared_memory(region, offset, byte_size))
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_input_sizes(
    context: Handle<V1Context>,
    input: usize,
    byte_size: *mut i64,
    total: *mut u64,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (byte_size, total) =
            unsafe { (result(byte_size, "byte_size")?, result(total, "total")?) };
        context.get()?.change(input, |input| {
            byte_size.write(input.byte_size());
            total.write(input.total_byte_size());
            Ok(())
        })
    })
}

/// `TRTC_COPY_INPUTS`.
const COPY_INPUTS: u32 = 1;

fn check_flags(flags: u32) -> Outcome<()> {
    if flags & !COPY_INPUTS == 0 {
        return Ok(());
    }
    Err(Failure::argument(format!("flags {flags:#x} has bits that a v1 request does not have")))
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_run(
    context: Handle<V1Context>,
    flags: u32,
    deadline_us: u64,
    place: *mut Handle<V1Result>,
) -> Error {
    call(|| {
        check_flags(flags)?;
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result(place, "result") }?);
        let mut request = context.stateful();
        request.run.deadline = context.limit(deadline_us);
        place.write(context.finish(&request)?);
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_run_async(
    context: Handle<V1Context>,
    flags: u32,
    deadline_us: u64,
    callback: Option<Callback>,
    user: *mut c_void,
    id: *mut u64,
) -> Error {
    call(|| {
        check_flags(flags)?;
        let context = context.get()?;
        let mut request = context.stateful();
        request.run.deadline = context.limit(deadline_us);
        let number = context.start(&request, flags, callback, User(user))?;
        // SAFETY: the contract of this function.
        if let Ok(place) = unsafe { result(id, "id") } {
            place.write(number);
        }
        Ok(())
    })
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawInput {
    name: *const c_char,
    dims: *const i64,
    dim_count: usize,
    data: *const *const u8,
    sizes: *const usize,
    count: usize,
    region: *const c_char,
    region_offset: u64,
    region_byte_size: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawRequest {
    struct_size: usize,
    options: *const RawOptions,
    inputs: *const RawInput,
    input_count: usize,
    flags: u32,
    deadline_us: u64,
}

impl V1Context {
    /// The request of the one-call form, and its flags.
    ///
    /// # Safety
    /// `raw` is NULL or points to a request as the header describes it.
    #[expect(
        clippy::undocumented_unsafe_blocks,
        reason = "all rest on the contract of the function"
    )]
    unsafe fn request(&self, raw: *const RawRequest) -> Outcome<(Request, u32)> {
        // SAFETY: the contract of this function, here and below.
        let raw = unsafe { structure(raw, "request") }?;
        check_flags(raw.flags)?;
        let mut request = Request { run: self.context.new_run(), order: Vec::new() };
        request.set_options(&unsafe { options(raw.options) }?)?;
        request.run.deadline = self.limit(raw.deadline_us);
        for given in unsafe { array(raw.inputs, raw.input_count, "inputs") }? {
            let (name, region) = unsafe {
                (
                    text(given.name, "an input's name")?,
                    optional_text(given.region, "a region's name")?,
                )
            };
            let input = request.run.input(name)?;
            if !given.dims.is_null() {
                input.set_shape(unsafe { array(given.dims, given.dim_count, "dims") }?)?;
            }
            if let Some(region) = region {
                input.set_shared_memory(region, given.region_offset, given.region_byte_size)?;
            }
            let (data, sizes) = unsafe {
                (array(given.data, given.count, "data")?, array(given.sizes, given.count, "sizes")?)
            };
            for (data, size) in data.iter().zip(sizes) {
                let bytes = unsafe { array(*data, *size, "the data of an input") }?;
                unsafe { input.set_borrowed(bytes.as_ptr(), bytes.len()) }?;
            }
        }
        Ok((request, raw.flags))
    }
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_infer(
    context: Handle<V1Context>,
    request: *const RawRequest,
    place: *mut Handle<V1Result>,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result(place, "result") }?);
        // SAFETY: as above.
        let (request, _) = unsafe { context.request(request) }?;
        place.write(context.finish(&request)?);
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_infer_async(
    context: Handle<V1Context>,
    request: *const RawRequest,
    callback: Option<Callback>,
    user: *mut c_void,
    id: *mut u64,
) -> Error {
    call(|| {
        let context = context.get()?;
        // SAFETY: the contract of this function.
        let (request, flags) = unsafe { context.request(request) }?;
        let number = context.start(&request, flags, callback, User(user))?;
        // SAFETY: as above.
        if let Ok(place) = unsafe { result(id, "id") } {
            place.write(number);
        }
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_take(
    context: Handle<V1Context>,
    id: u64,
    wait: bool,
    taken: *mut u64,
    place: *mut Handle<V1Result>,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result(place, "result") }?);
        let id = match id {
            0 => context.context.next_completed(wait)?,
            id => Some(id),
        };
        let Some(id) = id else {
            place.write(Handle::NULL);
            return Ok(());
        };
        // SAFETY: as above.
        if let Ok(taken) = unsafe { result(taken, "taken") } {
            taken.write(id);
        }
        let found = context.context.take(id, wait)?;
        place.write(found.map_or(Handle::NULL, |results| {
            // The run that knew the order of the outputs is gone: they come in that of the model.
            let order: Vec<_> =
                context.context.model().outputs().iter().map(|o| o.name.clone()).collect();
            Handle::new(Arc::new(V1Result::new(results, &order)))
        }));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_next_completed(
    context: Handle<V1Context>,
    wait: bool,
    id: *mut u64,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result(id, "id") }?);
        place.write(context.context.next_completed(wait)?.unwrap_or(0));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_cancel(context: Handle<V1Context>, id: u64) -> Error {
    call(|| {
        context.get()?.context.cancel(id);
        Ok(())
    })
}

#[repr(C)]
pub struct RawStatistics {
    completed_request_count: u64,
    total_request_time_ns: u64,
    send_time_ns: u64,
    receive_time_ns: u64,
}

/// # Safety
/// See [`trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_context_statistics(
    context: Handle<V1Context>,
    statistics: *mut RawStatistics,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result(statistics, "statistics") }?;
        let sums = context.get()?.context.statistics();
        place.write(RawStatistics {
            completed_request_count: sums.completed_request_count,
            total_request_time_ns: sums.cumulative_total_request_time_ns,
            send_time_ns: sums.cumulative_send_time_ns,
            receive_time_ns: sums.cumulative_receive_time_ns,
        });
        Ok(())
    })
}
