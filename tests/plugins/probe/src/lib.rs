//! The backend `probe` for tests: it echoes inputs, and misbehaves on command.
//!
//! Output i is a copy of input i. Commands are request parameters or, for all requests, parameters
//! of the model's configuration; a request's win. See [`commands::Commands`] for the list.

mod accumulate;
mod cancelled;
mod commands;
mod merge;
mod nested;
mod report;
mod respond;

use accumulate::Sums;
use cancelled::Cancelled;
use commands::{Commands, Record};
use respond::Responded;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use trtserver_plugin_api::author::{
    AnyThread, Backend, BackendContext, BackendInfo, Batch, CancelHandler, Completion, ConfigPatch,
    Counter, Dtype, Error, Histogram, Instance, InstanceContext, Kind, Memory, Model, ModelContext,
    Platform, PreferredGroup, Request, Scope,
};
use trtserver_plugin_api::{export_backend, trts_info, trts_verbose};

struct Probe;

impl Backend for Probe {
    type Model = Echo;

    const INFO: BackendInfo = BackendInfo {
        platforms: &[Platform { name: "probe", default_file: "" }],
        // On the CPU unless the configuration says otherwise, so that tests do the same on machines
        // with GPUs.
        instance_kinds: &[Kind::Cpu, Kind::Gpu, Kind::Model],
        preferred: &[PreferredGroup { kind: Kind::Cpu, count: 1 }],
        ..BackendInfo::new("probe", env!("CARGO_PKG_VERSION"))
    };

    fn open(context: &BackendContext) -> Result<Self, Error> {
        if let Some(text) = context.setting("fail") {
            return Err(Error::unavailable(text));
        }
        Ok(Probe)
    }

    fn runtime(&self) -> String {
        format!("probe {}", env!("CARGO_PKG_VERSION"))
    }

    fn autocomplete(&self, model: &ModelContext) -> Result<Completion, Error> {
        let commands = Commands::from_model(model);
        commands.misstep("autocomplete")?;
        if !model.autocomplete() {
            return Ok(Completion::default());
        }
        let mut patch = String::new();
        if model.inputs().len() == 0 {
            patch += "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1 ] } ]\n";
        }
        if model.outputs().len() == 0 {
            patch += "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ] } ]\n";
        }
        patch += commands.patch.as_deref().unwrap_or_default();
        let state = format!("state of version {}", model.version());
        let patch = (!patch.is_empty()).then_some(ConfigPatch::Text(patch));
        Ok(Completion::from(patch).with_state(state))
    }
}

export_backend!(Probe);

struct Echo {
    /// Positions of the declared inputs.
    inputs: HashMap<String, usize>,
    outputs: Vec<String>,
    /// Type of the output BATCH.
    report: Option<Dtype>,
    batches: bool,
    /// What is added to outputs, from a file of the version.
    base: i32,
    commands: Commands,
}

impl Model for Echo {
    type Backend = Probe;
    type Instance = Worker;

    fn open(_: &Arc<Probe>, context: &ModelContext) -> Result<Self, Error> {
        let commands = Commands::from_model(context);
        commands.misstep("model_open")?;
        if let Some(path) = &commands.failing_opens {
            commands::fail_while_bytes_are_left(path)?;
        }
        if let Some(path) = &commands.open_until_file {
            commands::open_until_file(path, context.log())?;
        }
        if let Some(state) = context.state::<String>() {
            trts_info!(context.log(), "version {} opens with {state}", context.version());
        }
        for memory in [Memory::CPU, Memory::gpu(0)] {
            if let Some(bytes) = commands.report_bytes {
                context.log().report_memory(memory, bytes)?;
            }
        }
        let inputs = context.inputs().enumerate().map(|(i, t)| (t.name().to_owned(), i));
        let outputs = context.outputs().map(|t| t.name().to_owned());
        Ok(Echo {
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            report: context.outputs().find(|t| t.name() == report::BATCH).map(|t| t.dtype()),
            batches: context.max_batch_size() > 0,
            base: match &commands.base_file {
                Some(file) => base(&Path::new(context.version_dir()).join(file))?,
                None => 0,
            },
            commands,
        })
    }
}

/// The whole number in a file.
fn base(path: &Path) -> Result<i32, Error> {
    let text = std::fs::read_to_string(path);
    let number = text.map(|text| text.trim().parse().ok());
    let wrong = |e: &str| Error::invalid(format!("'{}': {e}", path.display()));
    number.map_err(|e| wrong(&e.to_string()))?.ok_or_else(|| wrong("not a whole number"))
}

/// Executes the command `gauges`.
fn set_gauges(scope: &Scope, text: &str) -> Result<(), Error> {
    let mut words = text.split_whitespace();
    let (name, label) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    for (value, number) in words.filter_map(|word| word.split_once('=')) {
        let number = number.parse().map_err(|_| Error::invalid(format!("gauges: '{number}'")))?;
        scope.gauge(name, "Set by a test", &[(label, value)])?.set(number);
    }
    Ok(())
}

struct Worker {
    model: Arc<Echo>,
    log: Scope,
    counter: Option<Counter>,
    histogram: Option<Histogram>,
    sums: Sums,
    cancelled: Arc<Cancelled>,
    /// Threads that respond to detached requests; joined before the instance is closed.
    responding: Vec<JoinHandle<()>>,
}

impl Instance for Worker {
    type Model = Echo;
    const ANY_THREAD: AnyThread<Self> = AnyThread::YES;

    fn open(model: &Arc<Echo>, context: &InstanceContext) -> Result<Self, Error> {
        model.commands.misstep("instance_open")?;
        model.commands.misstep(&format!("instance_open {}", context.name()))?;
        trts_verbose!(context.log(), "probe instance {} is open", context.name());
        let log = context.log().clone();
        let commands = &model.commands;
        let label = commands.count_label.as_deref().unwrap_or("at");
        let count = |name: &String| log.counter(name, "Requests", &[(label, context.name())]);
        let counter = commands.count.as_ref().map(count).transpose()?;
        let observe = |name: &String| {
            log.histogram(name, "Requests", &[(label, context.name())], &[1.0, 2.0, 4.0])
        };
        let histogram = commands.observe.as_ref().map(observe).transpose()?;
        commands.gauges.iter().try_for_each(|gauges| set_gauges(&log, gauges))?;
        Ok(Worker {
            model: model.clone(),
            log,
            counter,
            histogram,
            sums: Sums::default(),
            cancelled: Arc::default(),
            responding: Vec::new(),
        })
    }

    fn cancel_handler(&self) -> Option<CancelHandler> {
        let cancelled = Arc::clone(&self.cancelled);
        Some(Box::new(move |key| cancelled.notify(key)))
    }

    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        self.responding.retain(|thread| !thread.is_finished());
        if let Some(counter) = &self.counter {
            counter.add(batch.len() as f64);
        }
        if let Some(histogram) = &self.histogram {
            histogram.observe(batch.len() as f64);
        }
        batch.mark_exec_start();
        batch.mark_compute_start();
        let mut all: SmallVec<[_; 4]> = SmallVec::new();
        for request in batch.requests() {
            let commands = self.model.commands.with_request(request.params());
            commands.misstep("execute")?;
            commands.flood(&self.log);
            all.push((request, commands));
        }
        // One delay for the batch: the longest of its requests.
        if let Some(longest) = all.iter().map(|(_, commands)| commands.delay).max() {
            std::thread::sleep(longest);
        }
        if let Some(longest) = all.iter().map(|(_, commands)| commands.spin).max() {
            let begin = Instant::now();
            while begin.elapsed() < longest {
                std::hint::spin_loop();
            }
        }
        if let Some(path) = all.iter().find_map(|(_, commands)| commands.until_file.as_deref()) {
            trts_info!(self.log, "the probe waits for the file {}", path.display());
            commands::wait_for_file(path)?;
        }
        if all.iter().any(|(_, commands)| commands.waits()) {
            // Tests disconnect when they have read this.
            trts_info!(self.log, "the probe waits to be cancelled");
        }
        batch.mark_compute_end();
        if all.iter().any(|(_, commands)| commands.merge) {
            merge::respond(&self.model, batch, &all)?;
        } else {
            for (position, (request, commands)) in all.iter().enumerate() {
                if let Err(error) = self.respond(batch, position, *request, commands) {
                    request.fail(error);
                }
            }
        }
        batch.mark_exec_end();
        Ok(())
    }
}

impl Worker {
    fn respond(
        &mut self,
        batch: &Batch<'_>,
        position: usize,
        request: Request<'_>,
        commands: &Commands,
    ) -> Result<(), Error> {
        if commands.record == Some(Record::Failure) {
            return Err(commands.error(&report::composition(batch)));
        }
        if let Some(mode) = commands.accumulate.filter(|_| commands.fail.is_none()) {
            let request = (position, request);
            return self.sums.respond(&self.model, batch, request, mode, commands);
        }
        if commands.calls() {
            return self.call(request, commands);
        }
        match respond::respond(&self.model, batch, request, commands, &self.cancelled)? {
            Responded::Now => {}
            Responded::Later(thread) => self.responding.push(thread),
        }
        Ok(())
    }
}

impl Worker {
    /// Calls the server, on another thread with `detach`.
    fn call(&mut self, request: Request<'_>, commands: &Commands) -> Result<(), Error> {
        let inputs = request.inputs().map(|input| {
            (input.name().to_owned(), input.dtype(), input.shape().to_vec(), input.to_bytes())
        });
        let inputs: nested::Inputs = inputs.collect();
        let (responder, log, commands) = (request.detach()?, self.log.clone(), commands.clone());
        let detach = commands.detach;
        let work = move || {
            let called = nested::call(&log, &commands, &inputs, || responder.is_cancelled());
            if let Err(error) = called.and_then(|all| nested::respond(&responder, &all)) {
                responder.fail(error);
            }
        };
        if detach {
            let thread = std::thread::Builder::new().name("probe-call".into()).spawn(work)?;
            self.responding.push(thread);
        } else {
            work();
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        for thread in self.responding.drain(..) {
            let _ = thread.join();
        }
        let _ = self.model.commands.misstep("close");
    }
}
