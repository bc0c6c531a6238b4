//! Keys of the requests whose cancellation the host notified.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use trtserver_plugin_api::author::{Error, RequestKey};

#[derive(Default)]
pub struct Cancelled {
    keys: Mutex<HashSet<RequestKey>>,
    changed: Condvar,
}

impl Cancelled {
    pub fn notify(&self, key: RequestKey) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        self.changed.notify_all();
    }

    /// Waits until the request is notified; always returns an error.
    pub fn wait(&self, key: RequestKey, at_most: Duration) -> Result<(), Error> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(keys, at_most, |keys| !keys.remove(&key));
        let timed_out = waited.unwrap_or_else(PoisonError::into_inner).1.timed_out();
        Err(if timed_out {
            Error::deadline("the probe was not notified of a cancellation in time")
        } else {
            Error::cancelled("cancelled, as the probe was notified")
        })
    }
}
