//! A custom library whose execution follows a script: callbacks with arbitrary arguments, and what
//! it returns.

use super::expected::{ExpectedCalls, GetInput, GetOutput, LibraryCall, requests};
use super::pick_generation;
use crate::backend::Custom;
use crate::custom_h::{
    Context, Execute, GetNextInput, GetNextInputV2, GetOutput as GetOutputB, GetOutputA,
    GetOutputV2, Initialize, InitializeData, MEMORY_CPU, Payload, PayloadA,
};
use crate::generation::Generation;
use crate::instance::CustomInstance;
use crate::library::LibraryEntries;
use crate::model::CustomModel;
use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::{Arc, Mutex, PoisonError};
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{
    Backend, BackendContext, BackendInfo, Batch, Error, Instance, InstanceContext, Model,
    ModelContext,
};
use trtserver_plugin_testkit as testkit;
use trtserver_plugin_testkit::{InstanceSpec, ModelSpec, Session};

/// A generation (one byte), then the script of an execution. Callbacks return what
/// [`ExpectedCalls`] says, memory that they return is readable or writable, and requests get the
/// outputs that were written.
pub fn custom_library(bytes: &[u8]) {
    let Some((generation, script)) = bytes.split_first() else { return };
    let generation = pick_generation(*generation);
    let _session = Session::start();
    let mut config = Vec::new();
    // With sequences, so that a request without a correlation id stands for an idle slot.
    trtserver_proto_wire::put_bytes(&mut config, 13, &[]);
    let spec = ModelSpec::new("m").max_batch_size(4).input("IN", dtype::INT32, &[-1]);
    let spec = spec.output("OUT", dtype::INT32, &[-1]).output("PAIR", dtype::INT32, &[2]);
    let spec = ModelSpec { config_pb: config, ..spec.output("TEXT", dtype::STRING, &[-1]) };
    let expected = ExpectedCalls::new(generation);
    *running() = Some(Running { generation, script: script.to_vec(), expected, panic: None });
    let opened = testkit::Backend::open(testkit::table::<Scripted>(), "custom", "", &[]);
    let instance = opened
        .and_then(|backend| backend.open_model(&spec))
        .and_then(|model| model.open_instance(&InstanceSpec::default()));
    let instance = instance.unwrap_or_else(|e| panic!("{e}"));
    // The first execution makes contexts that are stale in the second.
    for _ in 0..2 {
        let outcomes = instance.execute(&requests());
        let mut running = running();
        let running = running.as_mut().unwrap_or_else(|| panic!("no script"));
        if let Some(panic) = running.panic.take() {
            resume_unwind(panic);
        }
        running.expected.check(&outcomes);
    }
}

struct Running {
    generation: Generation,
    script: Vec<u8>,
    expected: ExpectedCalls,
    panic: Option<Box<dyn Any + Send>>,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

fn running() -> std::sync::MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The backend `custom` with that library.
struct Scripted(Arc<Custom>);
struct ScriptedModel(Arc<CustomModel>);
struct ScriptedInstance(CustomInstance);

impl Backend for Scripted {
    type Model = ScriptedModel;
    const INFO: BackendInfo = Custom::INFO;

    fn open(context: &BackendContext) -> Result<Self, Error> {
        Custom::open(context).map(|backend| Self(Arc::new(backend)))
    }
}

impl Model for ScriptedModel {
    type Backend = Scripted;
    type Instance = ScriptedInstance;

    fn open(backend: &Arc<Scripted>, context: &ModelContext) -> Result<Self, Error> {
        CustomModel::open(&backend.0, context).map(|model| Self(Arc::new(model)))
    }
}

impl Instance for ScriptedInstance {
    type Model = ScriptedModel;

    fn open(model: &Arc<ScriptedModel>, context: &InstanceContext) -> Result<Self, Error> {
        let generation = running().as_ref().map_or(Generation::V0_12, |running| running.generation);
        let (initialize, execute) = match generation {
            Generation::V0_10 => (Initialize::A(initialize_a), Execute::A(execute_a)),
            Generation::V0_11 | Generation::V0_12 => {
                (Initialize::B(initialize_b), Execute::B(execute_b))
            }
            Generation::V1_0 => (Initialize::C(initialize_c), Execute::B(execute_b)),
            Generation::V1_6 => (Initialize::C(initialize_c), Execute::V2(execute_v2)),
        };
        let entries = LibraryEntries { initialize, finalize, error_string, execute };
        let exports_version = generation == Generation::V1_6;
        CustomInstance::initialize(&model.0, context, entries, generation, exports_version)
            .map(Self)
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        self.0.execute(batch)
    }
}

unsafe extern "C-unwind" fn initialize_a(_: *const c_char, _: c_int, _: *mut Context) -> c_int {
    0
}

unsafe extern "C-unwind" fn initialize_b(
    _: *const c_char,
    _: usize,
    _: c_int,
    _: *mut Context,
) -> c_int {
    0
}

unsafe extern "C-unwind" fn initialize_c(_: *const InitializeData, _: *mut Context) -> c_int {
    0
}

unsafe extern "C-unwind" fn finalize(_: Context) -> c_int {
    0
}

/// Null, or a text that is not UTF-8.
unsafe extern "C-unwind" fn error_string(_: Context, code: c_int) -> *const c_char {
    if code % 2 == 0 { null() } else { c"\xff\xfe odd".as_ptr() }
}

/// The callbacks of a generation.
#[derive(Clone, Copy)]
enum Callbacks {
    A(GetNextInput, GetOutputA),
    B(GetNextInput, GetOutputB),
    V2(GetNextInputV2, GetOutputV2),
}

unsafe extern "C-unwind" fn execute_a(
    _: Context,
    n: u32,
    payloads: *mut PayloadA,
    get_input: GetNextInput,
    get_output: GetOutputA,
) -> c_int {
    // SAFETY: `n` payloads, valid during the call.
    let payloads = unsafe { std::slice::from_raw_parts_mut(payloads, n as usize) };
    let contexts = payloads.iter().map(|p| (p.input_context, p.output_context)).collect();
    let (code, codes) = execute(contexts, |_| {}, Callbacks::A(get_input, get_output));
    payloads.iter_mut().zip(codes).for_each(|(payload, code)| payload.error_code = code);
    code
}

unsafe extern "C-unwind" fn execute_b(
    _: Context,
    n: u32,
    payloads: *mut Payload,
    get_input: GetNextInput,
    get_output: GetOutputB,
) -> c_int {
    // SAFETY: `n` payloads, valid during the call.
    unsafe { execute_payloads(n, payloads, Callbacks::B(get_input, get_output)) }
}

unsafe extern "C-unwind" fn execute_v2(
    _: Context,
    n: u32,
    payloads: *mut Payload,
    get_input: GetNextInputV2,
    get_output: GetOutputV2,
) -> c_int {
    // SAFETY: the caller passes `n` payloads that are valid during the call.
    unsafe { execute_payloads(n, payloads, Callbacks::V2(get_input, get_output)) }
}

/// # Safety
/// `n` payloads.
unsafe fn execute_payloads(n: u32, payloads: *mut Payload, callbacks: Callbacks) -> c_int {
    // SAFETY: by the caller's promise.
    let payloads = unsafe { std::slice::from_raw_parts_mut(payloads, n as usize) };
    let contexts = payloads.iter().map(|p| (p.input_context, p.output_context)).collect();
    let listed = |expected: &ExpectedCalls| {
        for (at, payload) in payloads.iter().enumerate() {
            // SAFETY: arrays of as many names, ranks and shapes as the payload says.
            unsafe {
                let inputs = list(payload.input_names, payload.input_cnt);
                let ranks = list(payload.input_shape_dim_cnts, payload.input_cnt);
                let dims = list(payload.input_shape_dims, payload.input_cnt);
                let shapes = ranks.iter().zip(dims).map(|(rank, dims)| list(*dims, *rank as u32));
                let inputs = inputs.iter().map(|name| CStr::from_ptr(*name)).zip(shapes);
                let outputs = list(payload.required_output_names, payload.output_cnt);
                let outputs = outputs.iter().map(|name| CStr::from_ptr(*name));
                let (inputs, outputs): (Vec<_>, Vec<_>) = (inputs.collect(), outputs.collect());
                expected.check_payload(at, payload.batch_size, &inputs, &outputs);
            }
        }
    };
    let (code, codes) = execute(contexts, listed, callbacks);
    payloads.iter_mut().zip(codes).for_each(|(payload, code)| payload.error_code = code);
    code
}

/// # Safety
/// `n` elements, none if it is null.
unsafe fn list<'a, T>(first: *const T, n: u32) -> &'a [T] {
    // SAFETY: by the caller's promise.
    if first.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(first, n as usize) } }
}

/// Follows the script. Returns the result and the error codes of the payloads.
fn execute(
    contexts: Vec<(Context, Context)>,
    check_payloads: impl FnOnce(&ExpectedCalls),
    callbacks: Callbacks,
) -> (c_int, Vec<c_int>) {
    let mut running = running();
    let Some(running) = running.as_mut() else { return (0, Vec::new()) };
    let expected = &mut running.expected;
    let result = catch_unwind(AssertUnwindSafe(|| {
        expected.begin(&contexts);
        check_payloads(expected);
        let mut script = super::expected::Script(&running.script);
        while let Some(call) = script.next_call() {
            match call {
                LibraryCall::Input(call) => {
                    expected.check_input(&call, get_input(&call, expected, callbacks))
                }
                LibraryCall::Output(call) => {
                    expected.check_output(&call, get_output(&call, expected, callbacks));
                }
                LibraryCall::Fail { payload, code } => expected.codes[payload] = code,
                LibraryCall::Return(code) => expected.code = code,
            }
        }
    }));
    if let Err(panic) = result {
        running.panic.get_or_insert(panic);
    }
    (expected.code, expected.codes.to_vec())
}

fn name_pointer(name: Option<&CStr>) -> *const c_char {
    name.map_or(null(), CStr::as_ptr)
}

fn context_pointer(address: usize) -> Context {
    without_provenance_mut(address)
}

/// Calls back for an input. Returns the block, or `None` for a refusal.
fn get_input(
    call: &GetInput,
    expected: &ExpectedCalls,
    callbacks: Callbacks,
) -> Option<(*const u8, u64)> {
    let context = context_pointer(call.context.resolve(expected));
    let (mut content, mut bytes, mut memory_type) = (null::<c_void>(), call.hint, -1);
    let content_out = if call.null_result { null_mut() } else { &raw mut content };
    let name = name_pointer(call.name);
    // SAFETY: the arguments are valid or null, as the header allows.
    let accepted = unsafe {
        match callbacks {
            Callbacks::A(f, _) | Callbacks::B(f, _) => {
                f(context, name, content_out, &raw mut bytes)
            }
            Callbacks::V2(f, _) => {
                f(context, name, content_out, &raw mut bytes, &raw mut memory_type)
            }
        }
    };
    if matches!(callbacks, Callbacks::V2(..)) {
        assert_eq!(memory_type, if accepted { MEMORY_CPU } else { -1 });
    }
    accepted.then_some((content.cast(), bytes))
}

/// Calls back for an output. Returns its memory, or `None` for a refusal.
fn get_output(call: &GetOutput, expected: &ExpectedCalls, callbacks: Callbacks) -> Option<*mut u8> {
    let context = context_pointer(call.context.resolve(expected));
    // A library may write the dimensions that it passes.
    let mut dims = call.dims.clone();
    let dims_in = if call.null_dims { null_mut() } else { dims.as_mut_ptr() };
    let (mut content, mut memory_type) = (without_provenance_mut::<c_void>(1), -1);
    let content_out = if call.null_result { null_mut() } else { &raw mut content };
    let (name, rank, bytes) = (name_pointer(call.name), call.rank, call.bytes);
    // SAFETY: the arguments are valid or null, as the header allows; a rank beyond the dimensions
    // is refused unread.
    let accepted = unsafe {
        match callbacks {
            Callbacks::A(_, f) => f(context, name, bytes, content_out),
            Callbacks::B(_, f) => f(context, name, rank, dims_in, bytes, content_out),
            Callbacks::V2(_, f) => {
                f(context, name, rank, dims_in, bytes, content_out, &raw mut memory_type)
            }
        }
    };
    if matches!(callbacks, Callbacks::V2(..)) {
        assert_eq!(memory_type, if accepted { MEMORY_CPU } else { -1 });
    }
    accepted.then_some(content.cast())
}
