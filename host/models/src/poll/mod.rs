//! Polling: looks at the repositories while the server runs, and loads and removes models whose
//! files have changed.
//!
//! ```text
//!   interval, file events ──► files (what was found) ──► changes (what is due, once it has settled)
//!                                                               │
//!            lifecycle: load, remove, each in a task  ◄─────────┘
//! ```
//!
//! One thread looks; it waits for no load, so that a model that hangs delays no other.

mod changes;
mod files;
mod tree;
mod wake;
mod watch;

pub use wake::WakeEvent;

use super::lifecycle::{LoadError, ModelControl};
use crate::instance::priority::set_niceness;
use changes::{ModelLook, PollAction, RepositoryChanges};
use files::{FilesLook, LookExtent, ModelFiles, RepositoryFiles};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use trtserver_base::clock::now_ns;
use trtserver_model_store::ModelRepositories;
use trtserver_plugin_host::load_priority::model_nice;
use watch::WatchHints;

/// Every this many intervals everything is looked at, also what file events cover: an event may be
/// lost.
const FULL_LOOK: u64 = 20;
/// Added to the server's niceness for the polling thread.
const NICE: i32 = 10;

/// The state of the polling thread: what it has seen, what is due, and which loads failed.
pub struct RepositoryPoller {
    control: Arc<ModelControl>,
    files: RepositoryFiles,
    changes: RepositoryChanges<ModelFiles>,
    interval: Duration,
    /// Models that could not be loaded.
    failed: BTreeSet<String>,
    /// Failed models whose repository could not be read.
    unread: BTreeSet<String>,
    /// Ensembles whose steps are still to be loaded.
    waiting: BTreeSet<String>,
    ended: Arc<Mutex<Vec<PollOutcome>>>,
    wake: Arc<WakeEvent>,
}

/// A load or removal that has ended.
struct PollOutcome {
    name: String,
    action: PollAction,
    result: Result<(), LoadError>,
}

impl RepositoryPoller {
    /// Looks at the repositories for the first time: to be called before their models are loaded,
    /// so that a change during the load is not missed.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn new(
        control: &Arc<ModelControl>,
        repositories: &ModelRepositories,
        interval: Duration,
        settle: Duration,
    ) -> std::io::Result<Self> {
        let mut files = RepositoryFiles::new(repositories);
        let settle_ns = u64::try_from(settle.as_nanos()).unwrap_or(u64::MAX);
        let mut changes = RepositoryChanges::new(settle_ns);
        for (name, found) in files.look(&WatchHints::default(), LookExtent::All) {
            if let FilesLook::Files(found) = found {
                changes.start(&name, found);
            }
        }
        let wake = Arc::new(WakeEvent::new()?);
        control.wake_at_stop(&wake);
        Ok(Self {
            control: Arc::clone(control),
            files,
            changes,
            interval,
            failed: BTreeSet::new(),
            unread: BTreeSet::new(),
            waiting: BTreeSet::new(),
            ended: Arc::default(),
            wake,
        })
    }

    /// Starts the thread, whose changes run on this runtime. `failed`: models that the start could
    /// not load.
    ///
    /// # Errors
    /// The system starts no further thread.
    pub fn start(mut self, failed: impl IntoIterator<Item = String>) -> std::io::Result<()> {
        let runtime = Handle::current();
        self.failed.extend(failed);
        if self.control.models().listing_failure().is_some() {
            // The first look may have found models that the start could not list.
            self.changes.retry_all();
        }
        let thread = std::thread::Builder::new().name("poll".into());
        thread.spawn(move || self.run(&runtime)).map(drop)
    }

    fn run(mut self, runtime: &Handle) {
        set_niceness(model_nice(NICE));
        let interval = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        let (mut next_poll, mut polls) = (now_ns().saturating_add(interval), 0_u64);
        loop {
            let due = self.changes.next_due();
            // While changes settle, events do not wake: a file that is being written has thousands.
            let watches = self.files.watches().filter(|_| due.is_none());
            let until = due.map_or(next_poll, |due| due.min(next_poll));
            self.wake.wait(watches, until.saturating_sub(now_ns()));
            if self.control.is_stopping() {
                return;
            }
            self.take_ended();
            let mut hints = self.files.hints();
            hints.models.extend(self.changes.settling().map(str::to_owned));
            let now = now_ns();
            let extent = match now >= next_poll {
                true => {
                    let unread = std::mem::take(&mut self.unread);
                    unread.iter().for_each(|name| self.changes.retry(name));
                    (next_poll, polls) = (now.saturating_add(interval), polls + 1);
                    let full = polls.is_multiple_of(FULL_LOOK);
                    if full { LookExtent::All } else { LookExtent::Unwatched }
                }
                false => LookExtent::Hinted,
            };
            if extent != LookExtent::Hinted || hints != WatchHints::default() {
                for (name, found) in self.files.look(&hints, extent) {
                    match found {
                        FilesLook::Files(files) => {
                            self.changes.see(&name, ModelLook::Files(files), now)
                        }
                        FilesLook::Absent => self.changes.see(&name, ModelLook::Absent, now),
                        FilesLook::Failed => self.changes.see_nothing(&name, now),
                    }
                }
            }
            for (name, action) in self.changes.due(now) {
                self.begin(name, action, runtime);
            }
            self.begin_waiting(runtime);
            self.end_listing_failure();
        }
    }

    /// A repository that could not be listed at start was listed, and its models are loaded: the
    /// server may be ready.
    fn end_listing_failure(&self) {
        let models = self.control.models();
        if models.listing_failure().is_some()
            && self.files.all_listed()
            && self.changes.is_settled()
        {
            models.set_listing_failure(None);
        }
    }

    /// Begins a change. An ensemble is loaded after the models of its steps, if they are to be
    /// loaded, too.
    fn begin(&mut self, name: String, action: PollAction, runtime: &Handle) {
        if action == PollAction::Load && self.waits_for_step(&name) {
            self.waiting.insert(name);
            return;
        }
        let (control, ended) = (Arc::clone(&self.control), Arc::clone(&self.ended));
        let wake = Arc::clone(&self.wake);
        runtime.spawn(async move {
            let result = match action {
                PollAction::Load => control.load_changed(&name).await,
                PollAction::Remove => control.remove(&name).await,
            };
            drop(control);
            ended.lock().push(PollOutcome { name, action, result });
            wake.wake();
        });
    }

    fn begin_waiting(&mut self, runtime: &Handle) {
        for name in std::mem::take(&mut self.waiting) {
            self.begin(name, PollAction::Load, runtime);
        }
    }

    /// Whether a step of the ensemble `name` is loaded or about to be, and does not wait itself.
    fn waits_for_step(&self, name: &str) -> bool {
        // Most changes are of one model: its configuration need not be read here.
        if !self.changes.others_are_changing(name) {
            return false;
        }
        let steps = self.control.list_steps(name);
        let changes = |step: &String| {
            step != name && !self.waiting.contains(step) && self.changes.is_changing(step)
        };
        steps.iter().any(changes)
    }

    /// Failed ensembles are loaded another time when the model of a step was loaded.
    fn take_ended(&mut self) {
        let ended = std::mem::take(&mut *self.ended.lock());
        let mut loaded = BTreeSet::new();
        for PollOutcome { name, action, result } in ended {
            self.changes.ended(&name);
            if let Err(e) = result {
                if e.is_unread() {
                    self.unread.insert(name.clone());
                }
                self.failed.insert(name);
                continue;
            }
            self.failed.remove(&name);
            if action == PollAction::Load {
                loaded.insert(name);
            }
        }
        for failed in self.failed.iter().filter(|_| !loaded.is_empty()) {
            if self.control.list_steps(failed).iter().any(|step| loaded.contains(step)) {
                self.changes.retry(failed);
            }
        }
    }
}
