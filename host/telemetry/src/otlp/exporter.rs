//! The exporter: a bounded queue of encoded spans and the thread that sends them in batches.
//!
//! Who offers a trace, which is never a request but the thread that finished traces go to, encodes
//! its spans at once, or drops and counts them when the queue is full. The exporter's thread, which
//! has a low priority, gets whole batches.

use super::client::{ExportAnswer, GRPC_PREFIX, OtlpClient};
use super::request_head::RequestHead;
use super::retry::pause_before_retry;
use crate::settings::{ExporterSettings, QueueLimits};
use crate::span::{SpanBuffer, SpanEncoder};
use parking_lot::Mutex;
use rustix::process::setpriority_process;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use trtserver_base::telemetry_stats::{SpanDrop, SpanStats};
use trtserver_request_trace::ids::SpanId;

/// Interval of lines in the log about a collector that takes nothing.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Niceness of the thread: requests come first.
const NICENESS: i32 = 5;

/// Memory of sent batches that is kept for the next ones.
const MAX_SPARE: usize = 2;

/// Sends spans in the background.
pub struct SpanExporter<E> {
    queue: Arc<SpanQueue<E>>,
    stop: watch::Sender<Option<Instant>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What both ends of the queue share.
struct SpanQueue<E> {
    waiting: Mutex<WaitingSpans<E>>,
    /// A batch is full.
    full_batch: Notify,
    limits: QueueLimits,
    stats: Arc<SpanStats>,
}

/// Spans that wait.
struct WaitingSpans<E> {
    encoder: E,
    /// Full batches.
    full: VecDeque<Vec<u8>>,
    /// Spans that belong to no batch yet.
    spans: SpanBuffer,
    /// Memory for the next batches.
    spare: Vec<Vec<u8>>,
    /// The thread takes nothing more.
    ended: bool,
}

impl<E> SpanQueue<E> {
    fn length(&self, waiting: &WaitingSpans<E>) -> usize {
        waiting.full.len() * self.limits.max_export_batch_size + waiting.spans.count()
    }

    /// The next batch with its number of spans: a full one, or a partial one if that is due.
    fn next_batch(&self, is_partial_due: bool) -> Option<(usize, Vec<u8>)> {
        let mut waiting = self.waiting.lock();
        if let Some(batch) = waiting.full.pop_front() {
            return Some((self.limits.max_export_batch_size, batch));
        }
        let count = waiting.spans.count();
        if count == 0 || !is_partial_due {
            return None;
        }
        let spare = waiting.spare.pop().unwrap_or_default();
        Some((count, waiting.spans.take(count, spare)))
    }
}

impl<E: SpanEncoder> SpanExporter<E> {
    /// Starts the thread. The collector need not be reachable.
    ///
    /// # Errors
    /// A setting cannot be used, or there is no thread for it.
    pub fn start(settings: ExporterSettings) -> Result<Self, String> {
        let client = OtlpClient::new(&settings)?;
        let fault = |e: io::Error| format!("cannot start the thread that exports spans: {e}");
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fault)?;
        let head = RequestHead::new(&settings.resource);
        let room = GRPC_PREFIX + head.max_length();
        let queue = Arc::new(SpanQueue {
            waiting: Mutex::new(WaitingSpans {
                encoder: E::default(),
                full: VecDeque::new(),
                spans: SpanBuffer::new(room),
                spare: Vec::new(),
                ended: false,
            }),
            full_batch: Notify::new(),
            limits: settings.limits,
            stats: Arc::default(),
        });
        let (stop, stopped) = watch::channel(None);
        let queued = Arc::clone(&queue);
        let worker = ExportThread { client, queue: queued, stopped, head, room, last_logged: None };
        let named = std::thread::Builder::new().name("span-export".to_owned());
        let thread = named.spawn(move || worker.run(&runtime)).map_err(fault)?;
        Ok(Self { queue, stop, thread: Mutex::new(Some(thread)) })
    }

    /// Encodes the spans of a finished trace; drops and counts them when the queue is full. Never
    /// waits for the collector.
    pub fn offer(&self, source: &E::Source) {
        let QueueLimits { max_queue_size, max_export_batch_size, .. } = self.queue.limits;
        let mut guard = self.queue.waiting.lock();
        let waiting = &mut *guard;
        if waiting.ended || self.queue.length(waiting) >= max_queue_size {
            let count = waiting.encoder.span_count(source);
            return self.queue.stats.count_dropped(SpanDrop::QueueFull, count);
        }
        let before = waiting.spans.count();
        waiting.encoder.encode_spans(source, &mut waiting.spans);
        if self.queue.length(waiting) > max_queue_size {
            let count = waiting.spans.count() - before;
            waiting.spans.truncate(before);
            return self.queue.stats.count_dropped(SpanDrop::QueueFull, count);
        }
        let full_before = waiting.full.len();
        while waiting.spans.count() >= max_export_batch_size {
            let spare = waiting.spare.pop().unwrap_or_default();
            waiting.full.push_back(waiting.spans.take(max_export_batch_size, spare));
        }
        if waiting.full.len() > full_before {
            self.queue.full_batch.notify_one();
        }
    }

    pub fn stats(&self) -> &Arc<SpanStats> {
        &self.queue.stats
    }

    /// Sends what waits, for at most `limit`, and ends the thread. Blocks.
    pub fn shut_down(&self, limit: Duration) {
        self.stop.send_replace(Some(Instant::now() + limit));
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that exports spans has panicked");
        }
    }
}

/// The receiving end of the queue.
struct ExportThread<E> {
    client: OtlpClient,
    queue: Arc<SpanQueue<E>>,
    /// Until when the thread may send; `None`: the server runs.
    stopped: watch::Receiver<Option<Instant>>,
    head: RequestHead,
    /// Bytes before the spans of a batch, for its head.
    room: usize,
    last_logged: Option<Instant>,
}

impl<E: SpanEncoder> ExportThread<E> {
    fn run(mut self, runtime: &Runtime) {
        // Without the right to lower it, the thread has the server's priority.
        let _ = setpriority_process(None, NICENESS);
        runtime.block_on(async {
            tracing::info!("spans are exported to {}", self.client.url());
            let mut stopped = self.stopped.clone();
            let ended = async {
                let deadline = match stopped.wait_for(Option::is_some).await {
                    Ok(deadline) => *deadline,
                    Err(_) => None,
                };
                sleep_until(deadline.unwrap_or_else(Instant::now)).await;
            };
            // An attempt to send may take longer than the drain.
            tokio::select! {
                () = self.export_until_stopped() => {}
                () = ended => {}
            }
            self.count_left();
        });
    }

    async fn export_until_stopped(&mut self) {
        let mut stopped = self.stopped.clone();
        let queue = Arc::clone(&self.queue);
        let mut flush_at = Instant::now() + queue.limits.schedule_delay;
        loop {
            let is_partial_due = tokio::select! {
                () = queue.full_batch.notified() => Instant::now() >= flush_at,
                () = sleep_until(flush_at) => true,
                _ = stopped.wait_for(Option::is_some) => break,
            };
            self.export_queued(is_partial_due).await;
            if is_partial_due {
                flush_at = Instant::now() + queue.limits.schedule_delay;
            }
        }
        self.export_queued(true).await;
    }

    /// Sends all full batches, and a partial one if it is due.
    async fn export_queued(&mut self, is_partial_due: bool) {
        while let Some((count, spans)) = self.queue.next_batch(is_partial_due) {
            self.export_batch(count, spans).await;
        }
    }

    /// Sends a batch until the collector has it, refuses it, or its time is over.
    async fn export_batch(&mut self, count: usize, spans: Vec<u8>) {
        let mut unsent = UnsentSpans { count, stats: Arc::clone(&self.queue.stats) };
        let head = self.head.encode(spans.len() - self.room);
        let reason = match self.client.body(&head, spans, self.room) {
            Ok(body) => {
                let sent = self.send_batch(&body.sent, &mut unsent).await;
                let mut waiting = self.queue.waiting.lock();
                if waiting.spare.len() < MAX_SPARE {
                    waiting.spare.push(body.into_memory());
                }
                sent
            }
            Err(e) => Err(format!("cannot compress a batch: {e}")),
        };
        if let Err(message) = reason {
            unsent.drop_as(SpanDrop::ExportFailed);
            self.log_failure(&message);
        }
    }

    async fn send_batch(
        &mut self,
        body: &bytes::Bytes,
        unsent: &mut UnsentSpans,
    ) -> Result<(), String> {
        let deadline = Instant::now() + self.queue.limits.export_timeout;
        let mut stopped = self.stopped.clone();
        let mut attempts = 0;
        loop {
            let answer = match timeout_at(deadline, self.client.send(body.clone())).await {
                Ok(answer) => answer,
                Err(_) => return Err("no time is left for the batch".to_owned()),
            };
            attempts += 1;
            match answer {
                ExportAnswer::Accepted { rejected, message } => {
                    unsent.accepted(rejected);
                    if rejected > 0 {
                        self.log_failure(&format!("{rejected} spans were rejected: {message}"));
                    }
                    return Ok(());
                }
                ExportAnswer::Failed { failure, message } => {
                    self.queue.stats.count_failure(failure);
                    return Err(message);
                }
                ExportAnswer::Retry { failure, after, message } => {
                    self.queue.stats.count_failure(failure);
                    let left = deadline.saturating_duration_since(Instant::now());
                    let random = u64::from_be_bytes(SpanId::random().0);
                    let Some(pause) = pause_before_retry(attempts, left, after, random) else {
                        return Err(format!("{message}; attempts: {attempts}"));
                    };
                    let was_stopped = stopped.borrow().is_some();
                    tokio::select! {
                        () = sleep(pause) => {}
                        // The time at the end is short: one more attempt at once.
                        _ = stopped.wait_for(Option::is_some), if !was_stopped => {}
                    }
                }
            }
        }
    }

    /// One line per interval: the metrics have the numbers.
    fn log_failure(&mut self, message: &str) {
        let now = Instant::now();
        if self.last_logged.is_none_or(|last| now - last >= LOG_INTERVAL) {
            self.last_logged = Some(now);
            tracing::warn!("the collector at {} did not take spans: {message}", self.client.url());
        }
    }

    /// Counts what the end of the server leaves.
    fn count_left(&self) {
        let mut waiting = self.queue.waiting.lock();
        waiting.ended = true;
        let left = self.queue.length(&waiting);
        drop(waiting);
        if left > 0 {
            self.queue.stats.count_dropped(SpanDrop::Shutdown, left);
        }
        let stats = &self.queue.stats;
        let lost: u64 = SpanDrop::ALL.iter().map(|reason| stats.dropped(*reason)).sum();
        tracing::info!("spans exported: {}, dropped: {lost}", stats.exported());
    }
}

/// Spans of a batch. Spans that are left at the end of the server, when it is dropped, are counted.
struct UnsentSpans {
    count: usize,
    stats: Arc<SpanStats>,
}

impl UnsentSpans {
    fn accepted(&mut self, rejected: usize) {
        let rejected = rejected.min(self.count);
        self.stats.count_exported(self.count - rejected);
        self.stats.count_dropped(SpanDrop::Rejected, rejected);
        self.count = 0;
    }

    fn drop_as(&mut self, reason: SpanDrop) {
        self.stats.count_dropped(reason, std::mem::take(&mut self.count));
    }
}

impl Drop for UnsentSpans {
    fn drop(&mut self) {
        self.drop_as(SpanDrop::Shutdown);
    }
}

#[cfg(test)]
#[path = "exporter_tests.rs"]
mod tests;
