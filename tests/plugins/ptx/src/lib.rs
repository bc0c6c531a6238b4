//! The backend `ptx` for tests on GPUs and on the fake driver: OUTPUT0 = INPUT0 + INPUT1, of
//! floats, by a kernel on the device of the instance; without one, on the CPU.
//!
//! Parameters of the model: `spin_us`, for which a kernel runs before the sum; `fault`, whose
//! kernel faults; `report_bytes`, which an instance reports as memory of its own. Of a request:
//! `fault`.

mod cuda; // the driver's functions for kernels

use cuda::Module;
use std::sync::Arc;
use trtserver_plugin_api::abi::types::memory_type;
use trtserver_plugin_api::author::*;
use trtserver_plugin_api::export_backend;

const CPU_AND_GPU: u32 = 1 << memory_type::CPU | 1 << memory_type::GPU;

struct Ptx;

impl Backend for Ptx {
    type Model = Sums;
    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "ptx", default_file: "" }],
        input_memory_types: CPU_AND_GPU,
        output_memory_types: CPU_AND_GPU,
        instance_kinds: &[Kind::Cpu, Kind::Gpu],
        max_in_flight: 2,
        ..BackendInfo::new("ptx", "1.0")
    };

    fn open(_: &BackendContext) -> Result<Self, Error> {
        Ok(Ptx)
    }
}

struct Sums {
    spin_ns: u64,
    fault: bool,
    report_bytes: u64,
}

impl Model for Sums {
    type Backend = Ptx;
    type Instance = Worker;

    fn open(_: &Arc<Ptx>, context: &ModelContext) -> Result<Self, Error> {
        let number = |key: &str| match context.parameter(key).map(str::parse::<u64>) {
            None => Ok(0),
            Some(Ok(number)) => Ok(number),
            Some(Err(e)) => Err(Error::invalid(format_args!("parameter '{key}': {e}"))),
        };
        Ok(Sums {
            spin_ns: number("spin_us")? * 1000,
            fault: number("fault")? != 0,
            report_bytes: number("report_bytes")?,
        })
    }
}

struct Worker {
    model: Arc<Sums>,
    gpu: Option<(Device, Module)>,
    scope: Scope,
}

impl Instance for Worker {
    type Model = Sums;

    fn open(model: &Arc<Sums>, context: &InstanceContext) -> Result<Self, Error> {
        let module = |device| Ok::<_, Error>((device, Module::load(include_str!("kernels.ptx"))?));
        let gpu = context.device().map(module).transpose()?;
        let scope = context.log().clone();
        let memory = gpu.as_ref().map_or(Memory::CPU, |(device, _)| device.memory());
        scope.report_memory(memory, model.report_bytes)?;
        Ok(Worker { model: Arc::clone(model), gpu, scope })
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        let Some((device, module)) = &self.gpu else { return on_cpu(batch) };
        let done = self.on_gpu(batch, device, module);
        done.map_err(|e| match device.fault(e.text()) {
            // The host takes the instance out of service by itself.
            Ok(true) => Error::device_lost(e),
            _ => e,
        })
    }
}

impl Worker {
    /// Queues the work of the batch; the host sends its outputs when it is done.
    fn on_gpu(&self, batch: &Batch<'_>, device: &Device, module: &Module) -> Result<(), Error> {
        let memory = device.memory();
        let [a, b] = [batch.gather_buf(0, memory, None)?, batch.gather_buf(1, memory, None)?];
        if a.bytes != b.bytes {
            return Err(Error::invalid("INPUT0 and INPUT1 differ in size"));
        }
        let mut shape = batch
            .requests()
            .next()
            .and_then(|r| r.inputs().next())
            .map_or(Vec::new(), |i| i.shape().to_vec());
        if let Some(rows) = shape.first_mut() {
            *rows = batch.rows() as i64;
        }
        let sum = batch.scatter_buf("OUTPUT0", Dtype::Fp32, &shape, a.bytes as usize, memory)?;
        if sum.memory != memory {
            // No request asked for it.
            return Ok(());
        }
        let stream = device.stream();
        if self.model.fault || batch.requests().any(|r| r.param("fault").is_some()) {
            module.fault(stream)?;
        }
        if self.model.spin_ns > 0 {
            module.spin(stream, self.model.spin_ns)?;
        }
        let floats =
            u32::try_from(a.bytes / 4).map_err(|_| Error::invalid("the inputs are too large"))?;
        let addresses = [a, b, sum].map(|buf| buf.ptr.addr() as u64);
        // SAFETY: memory of the host for the compute stream, freed in its order, of as many floats
        // each.
        unsafe { module.add(stream, addresses, floats) }
    }
}

fn on_cpu(batch: &Batch<'_>) -> Result<(), Error> {
    let [a, b] = [batch.gather(0)?, batch.gather(1)?];
    let sums = batch.scatter_slice::<f32>("OUTPUT0", a.shape())?;
    for ((sum, a), b) in sums.iter_mut().zip(a.as_slice::<f32>()?).zip(b.as_slice::<f32>()?) {
        *sum = a + b;
    }
    Ok(())
}

impl Drop for Worker {
    fn drop(&mut self) {
        let memory = self.gpu.as_ref().map_or(Memory::CPU, |(device, _)| device.memory());
        // The report ends with the instance; 0 says that nothing is left.
        let _ = self.scope.report_memory(memory, 0);
    }
}

export_backend!(Ptx);
