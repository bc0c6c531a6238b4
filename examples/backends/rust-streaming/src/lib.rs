// SPDX-License-Identifier: Apache-2.0
//! Splits TEXT into words and sends one response per word: `execute` detaches the request and
//! returns, and a thread of the backend sends the responses until the text ends or the request is
//! cancelled.
//!
//! Model parameters (or, for all models, settings of the backend): `delay_ms` between two words, 0
//! by default; `max_words` that a text may have, no limit by default.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trtserver_plugin_api::author::*;
use trtserver_plugin_api::{export_backend, trts_info};

struct Streaming;

impl Backend for Streaming {
    type Model = Splitter;

    const INFO: BackendInfo = BackendInfo {
        // Models of this platform need no file.
        platforms: &[Platform { name: "rust_streaming", default_file: "" }],
        // Requests that one instance may process at the same time.
        max_in_flight: 64,
        ..BackendInfo::new("rust_streaming", env!("CARGO_PKG_VERSION"))
    };

    fn open(_: &BackendContext) -> Result<Self, Error> {
        Ok(Streaming)
    }
}

/// What the instances of one version of a model share.
struct Splitter {
    delay: Duration,
    max_words: usize,
    words: Counter,
    cancelled: Counter,
}

impl Model for Splitter {
    type Backend = Streaming;
    type Instance = Worker;

    fn open(_: &Arc<Streaming>, context: &ModelContext) -> Result<Self, Error> {
        let delay_ms = number(context, "delay_ms")?.unwrap_or(0);
        let max_words = number(context, "max_words")?.unwrap_or(u32::MAX);
        trts_info!(context.log(), "sends a word every {delay_ms} ms");
        let counter = |name, help| context.log().counter(name, help, &[("model", context.name())]);
        Ok(Splitter {
            delay: Duration::from_millis(delay_ms.into()),
            max_words: max_words as usize,
            words: counter("rust_streaming_words_total", "Words sent")?,
            cancelled: counter(
                "rust_streaming_cancelled_total",
                "Texts cancelled before the last word",
            )?,
        })
    }
}

/// A parameter of the model, else a setting of the backend. An invalid one fails the load of the
/// model.
fn number(context: &ModelContext, key: &str) -> Result<Option<u32>, Error> {
    let value = match context.parameters().integer(key)? {
        None => context.settings().integer(key)?,
        value => value,
    };
    let number = value.map(|value| {
        u32::try_from(value).map_err(|_| {
            let name = context.name();
            Error::invalid(format_args!("model '{name}': parameter '{key}' is out of range"))
        })
    });
    number.transpose()
}

/// A request whose words are being sent.
struct Job {
    responder: Responder,
    words: Vec<String>,
    next: usize,
    due: Instant,
}

/// What `execute`, the cancel handler and the sending thread share.
#[derive(Default)]
struct Shared {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: Vec<Job>,
    stop: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Worker {
    model: Arc<Splitter>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Instance for Worker {
    type Model = Splitter;

    fn open(model: &Arc<Splitter>, _: &InstanceContext) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let of_thread = (model.clone(), shared.clone());
        let thread = std::thread::Builder::new()
            .name("words".to_owned())
            .spawn(move || send_words(&of_thread.0, &of_thread.1))
            .map_err(|e| Error::internal(format_args!("no thread: {e}")))?;
        Ok(Worker { model: model.clone(), shared, thread: Some(thread) })
    }

    /// Detaches the requests and returns: the other thread sends the responses.
    fn execute(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        for request in batch.requests() {
            match self.job(request) {
                Ok(job) => self.shared.lock().waiting.push(job),
                Err(error) => request.fail(error),
            }
        }
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Wakes the thread, which checks all jobs. The lock orders this notification after the
    /// thread's check or before it; without the lock it could be lost between the check and the
    /// wait.
    fn cancel_handler(&self) -> Option<CancelHandler> {
        let shared = self.shared.clone();
        Some(Box::new(move |_| {
            let _ordered = shared.lock();
            shared.changed.notify_all();
        }))
    }
}

impl Worker {
    fn job(&self, request: Request<'_>) -> Result<Job, Error> {
        // Inputs are released when `execute` returns, so the words are copied.
        let text = request.required_input("TEXT")?;
        let text = text.strings().next().transpose()?.unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if words.len() > self.model.max_words {
            let (n, most) = (words.len(), self.model.max_words);
            let text = format_args!("the text has {n} words, this model takes {most}");
            return Err(Error::invalid(text).by_client());
        }
        Ok(Job { responder: request.detach()?, words, next: 0, due: Instant::now() })
    }
}

impl Drop for Worker {
    /// The host closes an instance when all its requests are finished, or after a grace period.
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn send_words(model: &Splitter, shared: &Shared) {
    let mut jobs = shared.lock();
    while !jobs.stop {
        let now = Instant::now();
        let due = |job: &Job| if job.responder.is_cancelled() { now } else { job.due.max(now) };
        let next = jobs.waiting.iter().enumerate().min_by_key(|(_, job)| due(job));
        let Some((at, due)) = next.map(|(at, job)| (at, due(job))) else {
            jobs = shared.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        if due > now {
            let waited = shared.changed.wait_timeout(jobs, due - now);
            jobs = waited.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        // Responses are sent without the lock.
        let job = jobs.waiting.remove(at);
        drop(jobs);
        let job = step(model, job);
        jobs = shared.lock();
        jobs.waiting.extend(job);
    }
    // A responder must not outlive its instance. Dropping one fails its request.
    jobs.waiting.clear();
}

/// Sends the next response of a job. Returns the job unless it is finished.
fn step(model: &Splitter, mut job: Job) -> Option<Job> {
    if job.words.is_empty() {
        // No response at all.
        job.responder.finish();
        return None;
    }
    match send_word(model, &job) {
        Err(error) => {
            job.responder.fail(error);
            None
        }
        Ok(()) => {
            job.next += 1;
            job.due += model.delay;
            (job.next < job.words.len()).then_some(job)
        }
    }
}

fn send_word(model: &Splitter, job: &Job) -> Result<(), Error> {
    if job.responder.is_cancelled() {
        model.cancelled.add(1.0);
        return Err(Error::cancelled("the request was cancelled before the last word"));
    }
    let mut response = job.responder.new_response()?;
    response.put_strings("WORD", &[1], &[&job.words[job.next]])?;
    response.put("POSITION", &[1], &[job.next as i32])?;
    model.words.add(1.0);
    if job.next + 1 == job.words.len() { response.send() } else { response.send_more() }
}

export_backend!(Streaming);

#[cfg(test)]
mod tests;
