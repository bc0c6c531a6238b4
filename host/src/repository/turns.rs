//! Turns by name: whoever changes a model has it alone, in the order of asking; other names do not wait.

use crate::sync::{Mutex as Lock, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Names that somebody has or waits for; others take no room.
#[derive(Default)]
pub struct Turns {
    names: Lock<HashMap<String, Arc<Mutex<()>>>>,
}

/// A turn; ends when it is dropped.
pub struct Turn {
    name: String,
    held: Option<OwnedMutexGuard<()>>,
    turns: Arc<Turns>,
}

impl Turns {
    /// Waits for the turn. Not to be called by who has one: two could wait for each other.
    pub async fn take(self: &Arc<Self>, name: &str) -> Turn {
        let turn = Arc::clone(self.names().entry(name.to_owned()).or_default());
        let held = Some(turn.lock_owned().await);
        Turn { name: name.to_owned(), held, turns: Arc::clone(self) }
    }

    fn names(&self) -> MutexGuard<'_, HashMap<String, Arc<Mutex<()>>>> {
        self.names.lock()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut names = self.turns.names();
        self.held = None;
        // Whoever waits holds it too.
        if names.get(&self.name).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            names.remove(&self.name);
        }
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
