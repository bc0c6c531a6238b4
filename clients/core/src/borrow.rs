//! Memory of a foreign caller (C, Python) as `Bytes`, with a way to wait until no connection reads
//! it any more.
//!
//! A call can end before its request is written: the deadline passes, or the server responds early.
//! The connection's task may then still hold the tensors. The caller must not get control of the
//! memory back until the last slice was dropped.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Counts the slices made of borrowed memory that are still alive.
#[derive(Clone, Debug, Default)]
pub struct Borrow(Arc<BorrowState>);

#[derive(Debug, Default)]
struct BorrowState {
    alive: AtomicUsize,
    released: Notify,
}

impl Borrow {
    /// Of memory of which no slice is in use.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The memory as a slice that is sent without a copy.
    ///
    /// # Safety
    /// `data` points to `len` bytes that stay valid and unchanged until
    /// [`is_released`](Self::is_released) is true or [`released`](Self::released) has completed.
    #[must_use]
    pub unsafe fn bytes(&self, data: *const u8, len: usize) -> Bytes {
        if len == 0 {
            return Bytes::new();
        }
        self.0.alive.fetch_add(1, Ordering::Relaxed);
        Bytes::from_owner(Slice { data, len, state: self.0.clone() })
    }

    /// Whether every slice was dropped.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.0.alive.load(Ordering::Acquire) == 0
    }

    /// Waits until every slice was dropped.
    pub async fn released(&self) {
        loop {
            let mut notified = std::pin::pin!(self.0.released.notified());
            notified.as_mut().enable();
            if self.is_released() {
                return;
            }
            notified.await;
        }
    }
}

struct Slice {
    data: *const u8,
    len: usize,
    state: Arc<BorrowState>,
}

// SAFETY: the memory is only read, and it stays valid by the contract of `Borrow::bytes`.
unsafe impl Send for Slice {}
// SAFETY: threads only read the memory, and the caller of `Borrow::bytes` keeps it valid.
unsafe impl Sync for Slice {}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the contract of `Borrow::bytes`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        if self.state.alive.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.state.released.notify_waiters();
        }
    }
}
