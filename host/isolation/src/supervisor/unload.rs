//! Deadline of a model that is being unloaded: outstanding requests may finish, but a child that
//! does not respond for the drain time is killed, even if its response deadline is longer.

use super::shared::{Phase, SupervisedModel};
use crate::exit_reason::KillReason;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shortest wait between two checks.
const MIN_WAIT: Duration = Duration::from_millis(20);

/// Starts the thread that kills a child which does not respond for the drain time, until the model
/// is closed.
pub fn begin_unload(shared: &Arc<SupervisedModel>) {
    let mut state = shared.lock();
    if state.closing || std::mem::replace(&mut state.unloading, true) {
        return;
    }
    drop(state);
    let of_thread = Arc::clone(shared);
    let thread = std::thread::Builder::new().name(format!("unload {}", shared.label));
    if let Err(e) = thread.spawn(move || watch_unload(&of_thread)) {
        tracing::warn!(
            "{}: no thread could be started to watch its unloading: {e}",
            shared.subject
        );
    }
}

fn watch_unload(shared: &SupervisedModel) {
    let since = Instant::now();
    let drain = *shared.drain.lock();
    loop {
        let mut state = shared.lock();
        if state.closing {
            return;
        }
        let inactive = state
            .sessions
            .iter()
            .filter_map(|s| s.connection()?.outstanding.inactive_since())
            .min();
        let left = inactive.map_or(drain, |at| drain.saturating_sub(at.max(since).elapsed()));
        let left = if left.is_zero() {
            if let Phase::Running(live) = &state.phase {
                live.process.kill(KillReason::UnloadTimeout(drain));
            }
            MIN_WAIT
        } else {
            left
        };
        shared.changed.wait_for(&mut state, left.max(MIN_WAIT));
    }
}
