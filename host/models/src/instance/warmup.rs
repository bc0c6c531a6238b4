//! Warm-up: samples run on the instance's thread before it takes requests, without the scheduler.

use super::worker::InstanceWorker;
use super::worker_batches::BatchContext;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::WarmupSpans;
use trtserver_plugin_host::model::BackendInstance;
use trtserver_request::check::all_outputs;
use trtserver_request::{
    ImplicitState, InferRequest, InferResponse, InputTensor, RequestContext, Responder,
    ResponseSink,
};
use trtserver_scheduler::batch_inputs;

/// One sample, ready to run; its tensors are shared by all instances.
#[derive(Clone, Debug)]
pub struct WarmupSample {
    pub name: Arc<str>,
    /// Number of executions.
    pub runs: u32,
    /// Requests of one row in one execution.
    pub calls: u32,
    /// Inputs of one request.
    pub inputs: SmallVec<[InputTensor; 2]>,
}

/// Interval at which a warm-up that waits for late responses checks whether it may go on.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The errors of one execution's requests.
type Errors = Arc<Mutex<Vec<Error>>>;

/// Discards responses and collects errors.
struct ErrorSink(Errors);

impl ResponseSink for ErrorSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, _: bool) {
        if let Err(e) = response {
            self.0.lock().push(e);
        }
    }
}

impl InstanceWorker {
    /// Runs every sample. Stops when one fails, when another instance of the model fails to open,
    /// at the time limit, and when the load is cancelled.
    pub(super) fn warm_up(
        &self,
        instance: &mut BackendInstance,
        samples: &[WarmupSample],
    ) -> Result<WarmupSpans> {
        let mut spans = WarmupSpans::new();
        let mut context = BatchContext::default();
        let start = Instant::now();
        for sample in samples {
            for iteration in 1..=sample.runs {
                self.check_warmup(start)?;
                tracing::debug!(
                    "model '{}' instance {} is running warmup sample '{}' for iteration {iteration}",
                    self.signature.model,
                    self.plan.name,
                    sample.name
                );
                let from = now_ns();
                let errors = Errors::default();
                let mut requests = self.requests(sample, &errors);
                self.cancel.executes(&requests);
                self.execute(instance, &mut context, &mut requests, true);
                while !context.outstanding.wait_at_most(0, Some(CHECK_INTERVAL)) {
                    if let Err(e) = self.check_warmup(start) {
                        self.drain_outstanding(&context.outstanding);
                        return Err(e);
                    }
                }
                if let Some(e) = warmup_failure(&sample.name, &errors) {
                    return Err(e);
                }
                let span = spans.entry(Arc::clone(&sample.name)).or_default();
                span.add(now_ns().saturating_sub(from));
            }
        }
        tracing::info!(
            "model '{}' instance {} was warmed up in {:.1} ms",
            self.signature.model,
            self.plan.name,
            start.elapsed().as_secs_f64() * 1e3
        );
        Ok(spans)
    }

    /// Whether a warm-up that began at `start` may go on.
    fn check_warmup(&self, start: Instant) -> Result<()> {
        let why = match self.warmup_limit {
            _ if self.queue.is_closed() || self.cancel.is_cancelled() => "was aborted".to_owned(),
            Some(limit) if start.elapsed() > limit => {
                format!("exceeds --warmup-timeout-secs={}", limit.as_secs())
            }
            _ => return Ok(()),
        };
        Err(Error::unavailable(format!(
            "model '{}' is not loaded: the warmup of instance {} {why}",
            self.signature.model, self.plan.name
        )))
    }

    fn requests(&self, sample: &WarmupSample, errors: &Errors) -> Vec<InferRequest> {
        let one = |_| {
            let now = now_ns();
            let sink = ErrorSink(Arc::clone(errors));
            let context = RequestContext {
                signature: Arc::clone(&self.signature),
                stats: None,
                received_ns: now,
                batch: 1,
                outputs: all_outputs(&self.signature),
                stream: None,
                waits: false,
                wording: trtserver_request::context::ErrorWording::default(),
                used_memory: None,
            };
            let responder = Responder::new(context, sink);
            if !self.signature.states.is_empty() {
                // The backend must be able to write states, which are discarded.
                responder.set_implicit_state(ImplicitState::default());
            }
            let request = InferRequest {
                id: sample.name.to_string(),
                // Decoupled models may send any number of responses.
                streaming: true,
                warmup: true,
                ..InferRequest::new(responder, sample.inputs.clone())
            };
            request.responder.queued(now);
            request
        };
        let mut requests = (0..sample.calls).map(one).collect();
        batch_inputs::add_batch_inputs(&self.signature, &mut requests);
        requests
    }
}

/// The error of a sample, with each text once: its requests are alike and mostly fail alike.
fn warmup_failure(sample: &str, errors: &Errors) -> Option<Error> {
    let errors = errors.lock();
    let code = errors.first()?.code;
    let mut texts: Vec<&str> = Vec::new();
    for fault in errors.iter() {
        if !texts.contains(&fault.message.as_str()) {
            texts.push(&fault.message);
        }
    }
    let texts = texts.join("; ");
    Some(Error::new(code, format!("failed to run warmup sample '{sample}': {texts}")))
}

#[cfg(test)]
#[path = "warmup_tests.rs"]
mod tests;
