//! Events: points in the work of a stream, which other streams and threads wait for. Taken from a
//! pool per device.

use super::api::{CuEvent, EVENT_FLAGS};
use super::codes::NOT_READY;
use super::context::CudaContext;
use super::stream::CudaStream;
use parking_lot::Mutex;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_base::error::Result;

/// Free events of a device.
pub struct EventPool {
    context: &'static CudaContext,
    free: Mutex<Vec<EventHandle>>,
    created: AtomicUsize,
}

struct EventHandle(CuEvent);

// SAFETY: a handle of the driver, whose functions may be called on any thread.
unsafe impl Send for EventHandle {}
// SAFETY: the driver accepts calls with one event handle from several threads at once.
unsafe impl Sync for EventHandle {}

impl EventPool {
    pub(super) fn new(context: &'static CudaContext) -> Self {
        Self { context, free: Mutex::default(), created: AtomicUsize::new(0) }
    }

    /// An event that is not recorded, which counts as reached.
    pub fn event(&'static self) -> Result<CudaEvent> {
        // Not part of the condition below, whose guard would live as long as the block.
        let free = self.free.lock().pop();
        if let Some(handle) = free {
            return Ok(CudaEvent { pool: self, handle });
        }
        let _entered = self.context.enter()?;
        let mut handle = null_mut();
        // SAFETY: a context is current and the pointer is valid.
        self.context.check(unsafe { self.context.api.event_create(&mut handle, EVENT_FLAGS) })?;
        self.created.fetch_add(1, Ordering::Relaxed);
        Ok(CudaEvent { pool: self, handle: EventHandle(handle) })
    }

    /// An event after all work that is queued on `stream` now.
    pub fn record(&'static self, stream: &CudaStream) -> Result<CudaEvent> {
        let event = self.event()?;
        event.record(stream)?;
        Ok(event)
    }

    /// Events that were created, in use or free.
    pub fn created(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }
}

/// One event; returns to its pool when dropped. Streams that were made to wait for it do so
/// nevertheless, since the driver notes the recorded work when the wait is queued.
pub struct CudaEvent {
    pool: &'static EventPool,
    handle: EventHandle,
}

impl CudaEvent {
    pub fn context(&self) -> &'static CudaContext {
        self.pool.context
    }

    pub fn handle(&self) -> CuEvent {
        self.handle.0
    }

    /// Moves the event behind all work that is queued on `stream` now.
    pub fn record(&self, stream: &CudaStream) -> Result<()> {
        let context = self.pool.context;
        let _entered = context.enter()?;
        // SAFETY: event and stream are alive.
        context.check(unsafe { context.api.event_record(self.handle.0, stream.handle()) })
    }

    /// Work that is queued on `stream` after this waits for the event. The calling thread does not.
    pub fn block(&self, stream: &CudaStream) -> Result<()> {
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

impl Drop for CudaEvent {
    fn drop(&mut self) {
        let handle = EventHandle(self.handle.0);
        // The driver gives errors for all events of a lost device; they are of no further use.
        if self.pool.context.lost().is_none() {
            self.pool.free.lock().push(handle);
        }
    }
}
