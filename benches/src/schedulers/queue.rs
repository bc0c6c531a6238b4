//! The queue around a batcher, in this process: lock, clock, and threads that sleep and wake.
//!
//! The baseline is a channel of the standard library with the same requests.

use super::cpu::{MAX_ADDED_US, thread_cpu};
use super::samples::{requests, respond, signature};
use crate::Result;
use crate::options::Options;
use crate::table::{Table, median, verdict};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use trtserver_base::timer::DeadlineTimer;
use trtserver_request::{InferRequest, ModelSignature};
use trtserver_scheduler::batcher::settings::{
    BatchingSettings, DynamicSettings, SequenceSettings, SequenceStrategy,
};
use trtserver_scheduler::{RequestBatch, RequestQueue, SchedulingPolicy};

pub const COLUMNS: &[&str] =
    &["queue", "CPU µs/req", "submit", "take", "channel", "more", "requests a batch", "target", ""];
const POLICIES: [&str; 4] = ["default", "dynamic", "dynamic 16-preferred", "direct 16-slots"];
/// Most queued requests where one thread submits and takes.
const TURN: usize = 64;
/// Long enough for the taking thread to fall asleep.
const PAUSE: Duration = Duration::from_micros(100);
/// Taken requests are kept in reused memory and get their responses in groups of this size.
const KEPT: usize = 1024;

#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// One thread submits requests and takes them.
    OneThread,
    /// One thread submits as fast as it can, another takes.
    Busy,
    /// The taking thread sleeps whenever a request arrives.
    Asleep,
}

impl Pace {
    const ALL: [Pace; 3] = [Pace::OneThread, Pace::Busy, Pace::Asleep];

    fn name(self) -> &'static str {
        match self {
            Pace::OneThread => "one-thread",
            Pace::Busy => "busy",
            Pace::Asleep => "asleep",
        }
    }
}

/// CPU time of both sides for each request.
struct Cost {
    submit_us: f64,
    take_us: f64,
    batches: usize,
}

fn queue(policy: &str, signature: &Arc<ModelSignature>) -> Arc<RequestQueue> {
    let batching = |preferred: &[u32], delay_ns| BatchingSettings {
        max_rows: 16,
        preferred: preferred.to_vec(),
        delay_ns,
    };
    let shared =
        |batching| SchedulingPolicy::Dynamic(DynamicSettings { batching, ..Default::default() });
    let policy = match policy {
        "default" => shared(None),
        "dynamic" => shared(Some(batching(&[], 0))),
        "dynamic 16-preferred" => shared(Some(batching(&[16], 1_000_000))),
        _ => {
            let strategy = SequenceStrategy::Direct { delay_ns: 0, min_ready: 0 };
            let idle_ns = 1_000_000_000;
            let settings = SequenceSettings { instances: 1, slots: 16, idle_ns, strategy };
            SchedulingPolicy::Sequence(settings, Box::default())
        }
    };
    RequestQueue::new(policy, signature, 1, false, DeadlineTimer::leak())
}

/// Both sides in this thread, without contention and sleep.
fn one_thread(queue: &RequestQueue, requests: Vec<InferRequest>) -> Cost {
    let count = requests.len();
    let (mut submit, mut take, mut batches) = (Duration::ZERO, Duration::ZERO, 0);
    let mut taken = Vec::with_capacity(TURN);
    let mut batch = RequestBatch::default();
    let mut requests = requests.into_iter().peekable();
    while requests.peek().is_some() {
        let begin = thread_cpu();
        requests.by_ref().take(TURN).for_each(|request| queue.submit(request));
        let middle = thread_cpu();
        while queue.waiting() > 0 && queue.take(0, &mut batch) {
            batches += 1;
            taken.append(&mut batch.requests);
        }
        let end = thread_cpu();
        submit += middle.saturating_sub(begin);
        take += end.saturating_sub(middle);
        respond(&mut taken);
    }
    cost(count, submit, take, batches)
}

/// `submit` on this thread, `take` on another one. `take` appends what is ready, waits if there is
/// nothing, and returns false at the end.
fn two_threads(
    pace: Pace,
    requests: Vec<InferRequest>,
    submit: impl Fn(InferRequest),
    close: impl FnOnce(),
    mut take: impl FnMut(&mut Vec<InferRequest>) -> bool + Send,
) -> Result<Cost> {
    let count = requests.len();
    let ready = AtomicBool::new(false);
    let arrived = AtomicUsize::new(0);
    thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let mut taken = Vec::with_capacity(KEPT);
            let (mut used, mut batches) = (Duration::ZERO, 0);
            ready.store(true, Ordering::Release);
            let mut begin = thread_cpu();
            loop {
                let before = taken.len();
                if !take(&mut taken) {
                    break;
                }
                batches += 1;
                // Null requests of sequences are among them.
                let counted =
                    taken[before..].iter().filter(|request| request.context().is_counted());
                arrived.fetch_add(counted.count(), Ordering::Release);
                if taken.len() + TURN > KEPT {
                    used += thread_cpu().saturating_sub(begin);
                    respond(&mut taken);
                    begin = thread_cpu();
                }
            }
            used += thread_cpu().saturating_sub(begin);
            respond(&mut taken);
            (used, batches)
        });
        while !ready.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let mut used = Duration::ZERO;
        if pace == Pace::Busy {
            let begin = thread_cpu();
            requests.into_iter().for_each(submit);
            used = thread_cpu().saturating_sub(begin);
        } else {
            let clock = clock_cost();
            for (number, request) in requests.into_iter().enumerate() {
                thread::sleep(PAUSE);
                // The previous request may be delayed by its batcher, but not longer than this.
                let limit = Instant::now() + Duration::from_millis(10);
                while arrived.load(Ordering::Acquire) < number && Instant::now() < limit {
                    thread::sleep(PAUSE);
                }
                let begin = thread_cpu();
                submit(request);
                used += thread_cpu().saturating_sub(begin).saturating_sub(clock);
            }
        }
        close();
        let (take, batches) = taker.join().map_err(|_| "the taker panicked")?;
        Ok(cost(count, used, take, batches))
    })
}

/// The cost of reading the clock twice.
fn clock_cost() -> Duration {
    let readings = (0..1_000).map(|_| {
        let begin = thread_cpu();
        thread_cpu().saturating_sub(begin)
    });
    readings.min().unwrap_or_default()
}

fn cost(count: usize, submit: Duration, take: Duration, batches: usize) -> Cost {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
    Cost { submit_us: each(submit), take_us: each(take), batches }
}

fn through_queue(pace: Pace, policy: &str, count: usize) -> Result<Cost> {
    let signature = signature();
    let (queue, requests) = (queue(policy, &signature), requests(&signature, count));
    if pace == Pace::OneThread {
        return Ok(one_thread(&queue, requests));
    }
    let mut batch = RequestBatch::default();
    let take = |taken: &mut Vec<InferRequest>| {
        let more = queue.take(0, &mut batch);
        taken.append(&mut batch.requests);
        more
    };
    two_threads(pace, requests, |request| queue.submit(request), || queue.close(), take)
}

/// The same requests through a channel.
fn through_channel(pace: Pace, count: usize) -> Result<Cost> {
    let requests = requests(&signature(), count);
    let (sender, receiver) = mpsc::channel();
    let sender = std::cell::RefCell::new(Some(sender));
    let submit = |request| {
        if let Some(sender) = &*sender.borrow() {
            let _ = sender.send(request);
        }
    };
    let take = move |taken: &mut Vec<InferRequest>| match receiver.recv() {
        Ok(request) => {
            taken.push(request);
            true
        }
        Err(_) => false,
    };
    two_threads(pace, requests, submit, || drop(sender.take()), take)
}

pub fn measure(options: &Options, table: &mut Table) {
    for pace in Pace::ALL {
        // `Asleep` consists mostly of pauses.
        let each_second = if pace == Pace::Asleep { 3e3 } else { 1e5 };
        let count = (options.pass.as_secs_f64() * each_second) as usize;
        for policy in POLICIES {
            let name = format!("scheduler queue {policy} {}", pace.name());
            if options.wants(&name) {
                table.measured(name, row(options, pace, policy, count));
            }
        }
    }
}

fn row(options: &Options, pace: Pace, policy: &str, count: usize) -> Result<Vec<String>> {
    let (mut submit, mut take, mut channel, mut batches) = (vec![], vec![], vec![], 0);
    for _ in 0..options.passes {
        let cost = through_queue(pace, policy, count)?;
        submit.push(cost.submit_us);
        take.push(cost.take_us);
        batches += cost.batches;
        if pace != Pace::OneThread {
            let cost = through_channel(pace, count)?;
            channel.push(cost.submit_us + cost.take_us);
        }
    }
    let (submit, take) = (median(&submit), median(&take));
    let (channel, channel_cell) = match channel.is_empty() {
        true => (0.0, "-".to_owned()),
        false => (median(&channel), format!("{:.2}", median(&channel))),
    };
    let more = submit + take - channel;
    Ok(vec![
        format!("{:.2}", submit + take),
        format!("{submit:.2}"),
        format!("{take:.2}"),
        channel_cell,
        format!("{more:+.2}"),
        format!("{:.1}", (count * options.passes) as f64 / batches.max(1) as f64),
        format!("<={MAX_ADDED_US:.0}"),
        verdict(more <= MAX_ADDED_US).to_owned(),
    ])
}
