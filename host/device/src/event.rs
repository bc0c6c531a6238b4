//! Events: points in the work of a stream, which other streams and threads wait for. Taken from a pool per device.

use super::api::{CuEvent, EVENT_FLAGS};
use super::codes::NOT_READY;
use super::context::Context;
use super::stream::Stream;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_base::error::Result;
use trtserver_base::sync::Mutex;

/// Free events of a device.
pub struct EventPool {
    context: &'static Context,
    free: Mutex<Vec<Handle>>,
    created: AtomicUsize,
}

struct Handle(CuEvent);

// SAFETY: a handle of the driver, whose functions may be called on any thread.
unsafe impl Send for Handle {}
// SAFETY: the driver accepts calls with one event handle from several threads at once.
unsafe impl Sync for Handle {}

impl EventPool {
    pub(super) fn new(context: &'static Context) -> Self {
        Self { context, free: Mutex::default(), created: AtomicUsize::new(0) }
    }

    /// An event that is not recorded, which counts as reached.
    pub fn event(&'static self) -> Result<Event> {
        // Not part of the condition below, whose guard would live as long as the block.
        let free = self.free.lock().pop();
        if let Some(handle) = free {
            return Ok(Event { pool: self, handle });
        }
        let _entered = self.context.enter()?;
        let mut handle = null_mut();
        // SAFETY: a context is current and the pointer is valid.
        self.context.check(unsafe { self.context.api.event_create(&mut handle, EVENT_FLAGS) })?;
        self.created.fetch_add(1, Ordering::Relaxed);
        Ok(Event { pool: self, handle: Handle(handle) })
    }

    /// An event after all work that is queued on `stream` now.
    pub fn record(&'static self, stream: &Stream) -> Result<Event> {
        let event = self.event()?;
        event.record(stream)?;
        Ok(event)
    }

    /// Events that were created, in use or free.
    pub fn created(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }
}

/// One event; returns to its pool when dropped. Streams that were made to wait for it do so nevertheless, since the
/// driver notes the recorded work when the wait is queued.
pub struct Event {
    pool: &'static EventPool,
    handle: Handle,
}

impl Event {
    pub fn context(&self) -> &'static Context {
        self.pool.context
    }

    pub fn handle(&self) -> CuEvent {
        self.handle.0
    }

    /// Moves the event behind all work that is queued on `stream` now.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        let context = self.pool.context;
        let _entered = context.enter()?;
        // SAFETY: event and stream are alive.
        context.check(unsafe { context.api.event_record(self.handle.0, stream.handle()) })
    }

    /// Work that is queued on `stream` after this waits for the event. The calling thread does not.
    pub fn block(&self, stream: &Stream) -> Result<()> {
        let context = stream.context();
        let _entered = context.enter()?;
        // SAFETY: event and stream are alive; they may belong to different devices.
        context.check(unsafe { context.api.stream_wait_event(stream.handle(), self.handle.0, 0) })
    }

    /// Whether the event was reached.
    pub fn is_reached(&self) -> Result<bool> {
        let context = self.pool.context;
        let _entered = context.enter()?;
        // SAFETY: the event is alive.
        match unsafe { context.api.event_query(self.handle.0) } {
            Err(e) if e.code == NOT_READY => Ok(false),
            result => context.check(result).map(|()| true),
        }
    }

    /// Blocks the thread until the event is reached. Never on a network thread.
    ///
    /// # Errors
    /// The device is lost.
    pub fn synchronize(&self) -> Result<()> {
        let context = self.pool.context;
        let _entered = context.enter()?;
        // SAFETY: the event is alive.
        context.check(unsafe { context.api.event_synchronize(self.handle.0) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let handle = Handle(self.handle.0);
        // The driver gives errors for all events of a lost device; they are of no further use.
        if self.pool.context.lost().is_none() {
            self.pool.free.lock().push(handle);
        }
    }
}
