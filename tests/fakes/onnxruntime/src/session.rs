//! Sessions, bindings and runs.

use crate::arena::{Arena, Block};
use crate::cuda::Driver;
use crate::log;
use crate::model::{Declared, Model, Operation};
use crate::value::{MemoryInfo, Place, Tensor, Value};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// Options of an execution provider.
#[derive(Clone, Default)]
pub struct Provider {
    pub name: &'static str,
    pub options: BTreeMap<String, String>,
    /// The address of the caller's stream.
    pub stream: usize,
}

#[derive(Clone, Default)]
pub struct SessionOptions {
    pub providers: Vec<Provider>,
}

#[derive(Default)]
pub struct RunOptions {
    pub entries: BTreeMap<String, String>,
}

pub struct Session {
    pub model: Model,
    pub gpu: Option<Gpu>,
    pub cpu_info: MemoryInfo,
    pub device_info: MemoryInfo,
    history: Mutex<RunHistory>,
}

/// What earlier runs leave in a session.
#[derive(Default)]
struct RunHistory {
    /// First dimension of the first input of the last run: another one makes the real library search
    /// the algorithms of its convolutions.
    rows: Option<i64>,
    runs: usize,
    /// Inputs and outputs of captured runs, by `gpu_graph_id`. Replays use these addresses, whatever is bound.
    captured: BTreeMap<String, CapturedRun>,
}

/// Inputs and outputs by name.
type CapturedRun = (Vec<(String, Value)>, Vec<(String, Value)>);

pub struct Gpu {
    device: i32,
    stream: *mut c_void,
    weights: Block,
    /// `enable_cuda_graph`
    graph: bool,
    pub arena: Arc<Arena>,
}

/// Where an output goes.
pub enum Target {
    Value(Value),
    /// Memory that the library allocates.
    Allocated,
}

pub struct Binding {
    pub session: *const Session,
    pub inputs: Vec<(String, Value)>,
    pub outputs: Vec<(String, Target)>,
    pub results: Vec<Value>,
}

impl Session {
    pub fn open(text: &str, options: &SessionOptions) -> Result<Self, String> {
        let model = Model::parse(text)?;
        let cuda = options.providers.iter().find(|provider| provider.name == "CUDA");
        let graph = cuda.is_some_and(|cuda| {
            cuda.options.get("enable_cuda_graph").is_some_and(|value| value == "1")
        });
        let outputs = model.outputs.iter().map(|(declared, _)| declared);
        if graph && model.inputs.iter().chain(outputs).any(|tensor| tensor.cpu) {
            return Err("This session cannot use the graph capture feature as requested by the user as all compute \
                        graph nodes have not been partitioned to the CUDAExecutionProvider"
                .to_owned());
        }
        for provider in &options.providers {
            let stream = if provider.stream == 0 { "none" } else { "the caller's" };
            log(format_args!("session {} stream={stream} {:?}", provider.name, provider.options));
        }
        let gpu = cuda.map(|cuda| Gpu::open(cuda, model.weights, graph)).transpose()?;
        let device = gpu.as_ref().map_or(Place::Cpu, |gpu| Place::Cuda(gpu.device));
        let (cpu_info, device_info) =
            (MemoryInfo { place: Place::Cpu }, MemoryInfo { place: device });
        Ok(Self { model, gpu, cpu_info, device_info, history: Mutex::default() })
    }

    /// Where the session takes or returns a tensor.
    pub fn info_of(&self, tensor: &Declared) -> &MemoryInfo {
        if tensor.cpu { &self.cpu_info } else { &self.device_info }
    }

    /// The error of a value that is bound where the session does not take it.
    pub fn check_place(&self, name: &str, place: Place) -> Result<(), String> {
        let outputs = self.model.outputs.iter().map(|(declared, _)| declared);
        let tensor = self.model.inputs.iter().chain(outputs).find(|tensor| tensor.name == name);
        let tensor = tensor.ok_or_else(|| format!("the model has no tensor '{name}'"))?;
        let expected = self.info_of(tensor).place;
        if place == expected {
            return Ok(());
        }
        Err(format!("'{name}' is bound in {place:?}, the session has it in {expected:?}"))
    }

    /// Computes the outputs. With a GPU, the work is on its stream when this returns, and done if
    /// `wait`, which a stream of the caller needs: without it the real library frees pinned memory
    /// in a callback of the driver, which ends the process.
    pub fn run(
        &self,
        inputs: &[(String, Value)],
        outputs: &[(String, Target)],
        wait: bool,
        graph_id: &str,
    ) -> Result<Vec<Value>, String> {
        let Some(gpu) = &self.gpu else { return self.compute_all(inputs, outputs, wait) };
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = inputs.first().and_then(|(_, value)| value.shape.first().copied());
        let replays = gpu.graph && history.captured.contains_key(graph_id);
        // A replay searches nothing.
        let changed = history.runs > 0 && history.rows != rows && !replays;
        history.rows = rows;
        history.runs += 1;
        let captured = history.captured.get(graph_id);
        let step = match (gpu.graph, captured) {
            (false, _) => "none",
            (true, None) => "capture",
            (true, Some(_)) => "replay",
        };
        log(format_args!(
            "run CUDA device={} wait={wait} inputs={} rows={} changed={changed} graph={step}",
            gpu.device,
            inputs.len(),
            rows.unwrap_or(-1)
        ));
        if !wait && !gpu.stream.is_null() {
            return Err(
                "disable_synchronize_execution_providers is set for a run on user_compute_stream: \
                        cudaFreeHost: operation not permitted"
                    .to_owned(),
            );
        }
        if !gpu.graph {
            return self.compute_all(inputs, outputs, wait);
        }
        if let Some((inputs, outputs)) = captured {
            let outputs = outputs
                .iter()
                .map(|(name, value)| (name.clone(), Target::Value(Arc::clone(value))));
            return self.compute_all(inputs, &outputs.collect::<Vec<_>>(), wait);
        }
        let fixed = outputs.iter().map(|(name, target)| match target {
            Target::Value(value) => Ok((name.clone(), Arc::clone(value))),
            Target::Allocated => Err(format!("output '{name}' of a captured run is not bound")),
        });
        let fixed = fixed.collect::<Result<Vec<_>, _>>()?;
        let results = self.compute_all(inputs, outputs, wait)?;
        history.captured.insert(graph_id.to_owned(), (inputs.to_vec(), fixed));
        Ok(results)
    }

    fn compute_all(
        &self,
        inputs: &[(String, Value)],
        outputs: &[(String, Target)],
        wait: bool,
    ) -> Result<Vec<Value>, String> {
        let input = |name: &str| {
            let found = inputs.iter().find(|(given, _)| given == name);
            found.map(|(_, value)| value).ok_or_else(|| format!("input '{name}' is missing"))
        };
        let mut results = Vec::new();
        for (name, target) in outputs {
            let (declared, operation) = self
                .model
                .outputs
                .iter()
                .find(|(declared, _)| declared.name == *name)
                .ok_or_else(|| format!("the model has no output '{name}'"))?;
            results.push(match operation {
                Operation::Pass(a) => Arc::clone(input(a)?),
                Operation::Roll(a) => self.roll(declared, target, input(a)?)?,
                Operation::Copy(a) => self.compute(declared, target, input(a)?, None)?,
                Operation::Add(a, b) => {
                    self.compute(declared, target, input(a)?, Some(input(b)?))?
                }
            });
        }
        match &self.gpu {
            Some(gpu) if wait => gpu.arena.driver.synchronize(gpu.stream)?,
            _ => {}
        }
        Ok(results)
    }

    /// The copy of `a`, or its sum with `b`.
    fn compute(
        &self,
        declared: &Declared,
        target: &Target,
        a: &Value,
        b: Option<&Value>,
    ) -> Result<Value, String> {
        if b.is_some_and(|b| b.shape != a.shape) {
            return Err(format!("the inputs of '{}' have different shapes", declared.name));
        }
        let place = self.info_of(declared).place;
        let output = match target {
            Target::Value(value) if value.shape == a.shape => Arc::clone(value),
            Target::Value(value) => {
                return Err(format!(
                    "OrtValue shape verification failed. Current shape:{:?} Requested shape:{:?}",
                    value.shape, a.shape
                ));
            }
            Target::Allocated => Arc::new(self.allocate(declared, place, &a.shape)?),
        };
        match (&self.gpu, place) {
            (Some(gpu), Place::Cuda(_)) => {
                let at = |tensor: &Tensor| tensor.data.addr() as u64;
                match b {
                    None => gpu.arena.driver.copy(at(&output), at(a), a.bytes, gpu.stream)?,
                    Some(b) => {
                        let floats = u32::try_from(a.bytes / 4).unwrap_or(u32::MAX);
                        gpu.arena.driver.add([at(a), at(b), at(&output)], floats, gpu.stream)?;
                    }
                }
            }
            _ => {
                // SAFETY: CPU memory of this size, the output is not read meanwhile.
                unsafe {
                    std::ptr::copy(a.data, output.data, a.bytes);
                    for i in 0..b.map_or(0, |_| a.bytes / 4) {
                        *output.data.cast::<f32>().add(i) +=
                            b.map_or(0.0, |b| *b.data.cast::<f32>().add(i));
                    }
                }
            }
        }
        Ok(output)
    }

    /// Each row is the next one of `a`: rows that depend on each other.
    fn roll(&self, declared: &Declared, target: &Target, a: &Value) -> Result<Value, String> {
        let place = self.info_of(declared).place;
        let output = match target {
            Target::Value(value) => Arc::clone(value),
            Target::Allocated => Arc::new(self.allocate(declared, place, &a.shape)?),
        };
        let rows = a.shape.first().and_then(|&rows| usize::try_from(rows).ok()).unwrap_or(1).max(1);
        let row = a.bytes / rows;
        for at in 0..rows {
            let from = a.data.wrapping_add((at + 1) % rows * row);
            let to = output.data.wrapping_add(at * row);
            match &self.gpu {
                Some(gpu) => {
                    let (to, from) = (to.addr() as u64, from.addr() as u64);
                    gpu.arena.driver.copy(to, from, row, gpu.stream)?;
                }
                // SAFETY: rows of tensors of this size.
                None => unsafe { std::ptr::copy(from, to, row) },
            }
        }
        Ok(output)
    }

    fn allocate(&self, declared: &Declared, place: Place, shape: &[i64]) -> Result<Tensor, String> {
        match (&self.gpu, place) {
            (Some(gpu), Place::Cuda(device)) => {
                let bytes = crate::value::bytes(declared.element, shape);
                let block = gpu.arena.alloc(bytes)?;
                Ok(Tensor::on_device(declared.element, shape, device, block))
            }
            _ => Ok(Tensor::on_heap(declared.element, shape)),
        }
    }
}

impl Gpu {
    fn open(cuda: &Provider, weights: usize, graph: bool) -> Result<Self, String> {
        let option = |name: &str| cuda.options.get(name).map(String::as_str);
        let device = option("device_id").and_then(|id| id.parse().ok()).unwrap_or(0);
        let limit = option("gpu_mem_limit").map_or(Ok(usize::MAX), str::parse);
        let limit = limit.map_err(|e| format!("gpu_mem_limit: {e}"))?;
        let arena = Arena::new(Driver::open()?, limit);
        let stream = std::ptr::without_provenance_mut(cuda.stream);
        let gpu = Self { device, stream, weights: arena.alloc(weights)?, graph, arena };
        // As the real library, which does not wait for the weights.
        let at = gpu.weights.at;
        gpu.arena.driver.copy(at, at, weights, stream)?;
        Ok(gpu)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let idle = self.arena.driver.is_idle(self.stream);
        log(format_args!("release CUDA device={} idle={idle}", self.device));
    }
}
