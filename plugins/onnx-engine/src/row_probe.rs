//! Runs a session with a few rows, to find out whether its first dimension is a batch.

use crate::runtime::{OnnxRuntime, ort};
use crate::session::{OnnxSession, SessionTensor};
use crate::types;
use crate::value::OnnxValue;
use ort_sys::{OrtRunOptions, OrtValue};
use std::ffi::c_char;
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::inputs::CacheLine;
use trtserver_framework::row_probe::{self, ProbeRun, ProbedInput, ProbedOutput};
use trtserver_framework::shape::MAX_RANK;
use trtserver_framework::types::{element_count, type_size};
use trtserver_plugin_api::abi::types::dtype;

/// The library writes nothing about failed runs but fatal errors.
const FATAL: i32 = 4;

/// # Errors
/// Why the first dimension is not a batch.
pub fn expect_batch(session: &OnnxSession) -> Result<(), String> {
    let inputs = session.signature.inputs.iter().map(|input| ProbedInput {
        name: &input.name,
        dims: &input.dims,
        dim_names: &input.dim_names,
    });
    let options = RunOptions::new(session.runtime).map_err(|fault| fault.text)?;
    row_probe::expect_batch(&inputs.collect::<Vec<_>>(), |run| run_probe(session, &options, run))
}

fn run_probe(
    session: &OnnxSession,
    options: &RunOptions,
    run: &ProbeRun<'_>,
) -> Result<Vec<ProbedOutput>, PluginFault> {
    let runtime = session.runtime;
    let declared = &session.signature.inputs;
    let inputs: Vec<RunInput> = (declared.iter().zip(run.shapes))
        .map(|(input, shape)| RunInput::new(runtime, input, shape, run))
        .collect::<Result<_, _>>()?;
    let outputs: Vec<&SessionTensor> =
        session.signature.outputs.iter().filter(|output| output.element != 0).collect();
    let names: Vec<*const c_char> = declared.iter().map(|input| input.c_name.as_ptr()).collect();
    let values: Vec<*const OrtValue> =
        inputs.iter().map(|input| input.value.as_ptr().cast_const()).collect();
    let output_names: Vec<*const c_char> =
        outputs.iter().map(|output| output.c_name.as_ptr()).collect();
    let mut results = vec![ptr::null_mut(); outputs.len()];
    // SAFETY: names and values live in the signature and in `inputs`; the results are null and
    // become ours.
    unsafe {
        session.run_with(options.raw, (&names, &values), (&output_names, &mut results))?;
    }
    // SAFETY: allocated by the run, without another owner. All become owned before the first error
    // is returned.
    let owned = results.into_iter().map(|raw| unsafe { OnnxValue::from_raw(runtime, raw) });
    let owned: Vec<Result<OnnxValue, PluginFault>> = owned.collect();
    let read = |(output, value): (&&SessionTensor, Result<OnnxValue, PluginFault>)| {
        read_output(&output.name, &value?, run)
    };
    outputs.iter().zip(owned).map(read).collect()
}

fn read_output(
    name: &str,
    value: &OnnxValue,
    run: &ProbeRun<'_>,
) -> Result<ProbedOutput, PluginFault> {
    let mut buffer = [0; MAX_RANK];
    let (dtype, rank) = value.describe(&mut buffer)?;
    let shape = buffer[..rank].to_vec();
    let elements = match run.compared_bytes(dtype, &shape) {
        0 => Vec::new(),
        // SAFETY: a tensor of this shape and type in the memory of the CPU, alive during the copy.
        bytes => unsafe { std::slice::from_raw_parts(value.data()?, bytes) }.to_vec(),
    };
    Ok(ProbedOutput { name: name.to_owned(), shape, dtype, elements })
}

/// An input of a run. Strings are empty.
struct RunInput {
    /// First, so that it is dropped before the memory.
    value: OnnxValue,
    _memory: Vec<CacheLine>,
}

impl RunInput {
    fn new(
        runtime: &'static OnnxRuntime,
        input: &SessionTensor,
        shape: &[i64],
        run: &ProbeRun<'_>,
    ) -> Result<Self, PluginFault> {
        let name = &input.name;
        let kind = types::to_dtype(input.element);
        let element = types::to_element(kind).ok_or_else(|| {
            PluginFault::unsupported(format!("input '{name}' has a type without zeros"))
        })?;
        let count = element_count(shape).unwrap_or(0);
        if kind == dtype::STRING {
            let value = OnnxValue::new(runtime, element, shape)?;
            return Ok(Self { value, _memory: Vec::new() });
        }
        let bytes = count * type_size(kind);
        let mut memory = vec![CacheLine::EMPTY; bytes.div_ceil(size_of::<CacheLine>())];
        let data = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the lines are this many bytes at least, and nothing else refers to them yet.
        run.write_input(kind, unsafe { std::slice::from_raw_parts_mut(data, bytes) });
        // SAFETY: the memory has this size, is aligned, stays where it is and outlives the value.
        let value = unsafe { OnnxValue::over(runtime, element, shape, data, bytes)? };
        Ok(Self { value, _memory: memory })
    }
}

/// Options of a run that says nothing if it fails.
struct RunOptions {
    runtime: &'static OnnxRuntime,
    raw: *mut OrtRunOptions,
}

impl RunOptions {
    fn new(runtime: &'static OnnxRuntime) -> Result<Self, PluginFault> {
        let mut options = Self { runtime, raw: ptr::null_mut() };
        // SAFETY: the out pointer is ours, the options are alive.
        unsafe {
            ort!(runtime, CreateRunOptions(&raw mut options.raw))?;
            ort!(runtime, RunOptionsSetRunLogSeverityLevel(options.raw, FATAL))?;
        }
        Ok(options)
    }
}

impl Drop for RunOptions {
    fn drop(&mut self) {
        // SAFETY: ours, or null, which the library accepts; this is the only release.
        unsafe { ((*self.runtime.api).ReleaseRunOptions)(self.raw) }
    }
}
