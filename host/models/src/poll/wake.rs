//! Wakes the polling thread: when a load has ended, at shutdown, by file events.

use super::watch::DirWatches;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io::Result;
use std::os::fd::OwnedFd;

/// An eventfd, which is waited for together with that of the file events.
pub struct WakeEvent(OwnedFd);

impl WakeEvent {
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new() -> Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub fn wake(&self) {
        // Fails only if the thread is to be woken already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Waits until it is woken or a file event arrives, at most `ns` nanoseconds.
    pub fn wait(&self, watches: Option<&DirWatches>, ns: u64) {
        let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
        fds.extend(watches.map(|watches| PollFd::new(watches, PollFlags::IN)));
        let limit =
            Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
        let _ = poll(&mut fds, Some(&limit));
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.0, &mut count);
    }
}
