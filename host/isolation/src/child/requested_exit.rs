//! The end of this process that its backend has asked for, because an instance cannot go on: it
//! takes no further batches, which go to the next process, and ends when no other instance
//! executes.

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use trtserver_base::stats::OutstandingExecutions;

/// Whether this process ends, and the instances that may still execute.
#[derive(Default)]
pub struct ProcessEnd {
    /// Checked before each batch.
    begun: AtomicBool,
    instances: Mutex<Vec<InstanceEntry>>,
}

/// How often the thread that ends the process looks: an instance tells its own thread only when an
/// execution ends.
const INTERVAL: Duration = Duration::from_millis(5);

struct InstanceEntry {
    name: String,
    outstanding: Weak<OutstandingExecutions>,
    /// It may never answer what it executes.
    broken: bool,
}

impl ProcessEnd {
    fn lock(&self) -> MutexGuard<'_, Vec<InstanceEntry>> {
        self.instances.lock()
    }

    /// An instance was opened.
    pub fn register_instance(&self, name: &str, outstanding: &Arc<OutstandingExecutions>) {
        let mut all = self.lock();
        all.retain(|instance| instance.outstanding.strong_count() > 0);
        let outstanding = Arc::downgrade(outstanding);
        all.push(InstanceEntry { name: name.to_owned(), outstanding, broken: false });
    }

    /// Called before a batch is taken. Does not return when the process is about to end.
    pub fn wait_for_exit(&self) {
        while self.begun.load(Ordering::Acquire) {
            thread::sleep(Duration::from_secs(3600));
        }
    }

    /// The instance of this name cannot go on; `None`: none can.
    pub fn begin_exit(self: &Arc<Self>, broken: Option<&str>, reason: String) {
        let begun = self.begun.swap(true, Ordering::AcqRel);
        let Some(broken) = broken else { end(&reason) };
        for instance in self.lock().iter_mut().filter(|instance| instance.name == broken) {
            instance.broken = true;
        }
        if begun {
            return;
        }
        let (this, text) = (Arc::clone(self), reason.clone());
        let waiting = thread::Builder::new().name("end".to_owned()).spawn(move || {
            while this.is_executing() {
                thread::sleep(INTERVAL);
            }
            end(&text)
        });
        if waiting.is_err() {
            end(&reason);
        }
    }

    /// An instance that works executes something. The host limits the time.
    fn is_executing(&self) -> bool {
        let working: Vec<_> = self
            .lock()
            .iter()
            .filter(|instance| !instance.broken)
            .filter_map(|instance| instance.outstanding.upgrade())
            .collect();
        working.iter().any(|outstanding| !outstanding.at_most(0))
    }
}

fn end(reason: &str) -> ! {
    // The supervisor quotes the last lines of a process that ends.
    let _ = rustix::io::write(rustix::stdio::stderr(), format!("{reason}\n").as_bytes());
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}
