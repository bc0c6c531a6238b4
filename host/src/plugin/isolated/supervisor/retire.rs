//! A model that is being unloaded while its process may hang: what it has is answered, but not waited for as long as an
//! answer may take otherwise.

use super::super::exit_reason::Why;
use super::Shared;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between the kill and what follows from it.
const MOMENT: Duration = Duration::from_millis(20);

/// From here on, until the model is closed, its process is killed when it owes an answer and has been silent for the
/// time that a model gets to end.
pub fn retire(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    if state.closing || std::mem::replace(&mut state.retired, true) {
        return;
    }
    drop(state);
    let of_thread = Arc::clone(shared);
    let thread = std::thread::Builder::new().name(format!("end of {}", shared.label));
    if let Err(e) = thread.spawn(move || watch(&of_thread)) {
        tracing::warn!("{}: no thread watches its end: {e}", shared.subject);
    }
}

fn watch(shared: &Shared) {
    let since = Instant::now();
    let drain = *shared.drain.lock();
    loop {
        let state = shared.lock();
        if state.closing {
            return;
        }
        let silent = state.seats.iter().filter_map(|seat| seat.line()?.silent_since()).min();
        // What it is asked later it is given as long for.
        let left = silent.map_or(drain, |silent| drain.saturating_sub(silent.max(since).elapsed()));
        let left = if left.is_zero() {
            if let super::Phase::Up(live) = &state.phase {
                live.process.kill(Why::Unloading(drain));
            }
            MOMENT
        } else {
            left
        };
        let waited = shared.changed.wait_timeout(state, left.max(MOMENT));
        drop(waited);
    }
}
