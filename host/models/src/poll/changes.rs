//! Which models have to be loaded or unloaded, from what was found of them at each look. Pure.
//!
//! A change is acted on once nothing of the model has changed for the settle time, and once for
//! each state of its files: a load that fails is not repeated before the files change. One change
//! of a model runs at a time.

use std::collections::BTreeMap;

/// What has to be done with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollAction {
    /// It was added, changed, or has to be loaded another time.
    Load,
    /// It was removed.
    Remove,
}

/// One look at a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelLook<F> {
    Absent,
    /// Its files, in each repository that has it.
    Files(F),
}

/// The models of all repositories. `F` is what was found of a model; times are in nanoseconds.
pub struct RepositoryChanges<F> {
    settle_ns: u64,
    models: BTreeMap<String, ChangeEntry<F>>,
}

struct ChangeEntry<F> {
    /// State of the model at the last look.
    seen: ModelLook<F>,
    /// When the model was first seen in this state.
    since: u64,
    /// What the last load or removal began with; `None`: a load has to begin.
    handled: Option<ModelLook<F>>,
    /// A load or removal is running.
    busy: bool,
}

impl<F: Clone + PartialEq> RepositoryChanges<F> {
    pub fn new(settle_ns: u64) -> Self {
        Self { settle_ns, models: BTreeMap::new() }
    }

    /// `name` is loaded as it was `found` now.
    pub fn start(&mut self, name: &str, found: F) {
        let seen = ModelLook::Files(found);
        let handled = Some(seen.clone());
        self.models.insert(name.to_owned(), ChangeEntry { seen, since: 0, handled, busy: false });
    }

    /// `name` was `found` so at `now`.
    pub fn see(&mut self, name: &str, found: ModelLook<F>, now: u64) {
        match self.models.get_mut(name) {
            Some(model) if model.seen == found => {}
            Some(model) => (model.seen, model.since) = (found, now),
            None if found == ModelLook::Absent => {}
            None => {
                let handled = Some(ModelLook::Absent);
                let model = ChangeEntry { seen: found, since: now, handled, busy: false };
                self.models.insert(name.to_owned(), model);
            }
        }
    }

    /// The files of `name` could not be looked at: a change that has been seen has to settle from
    /// `now` on.
    pub fn see_nothing(&mut self, name: &str, now: u64) {
        if let Some(model) = self.models.get_mut(name).filter(|model| model.is_changed()) {
            model.since = now;
        }
    }

    /// Models with a change that is not begun.
    pub fn settling(&self) -> impl Iterator<Item = &str> {
        let settling = self.models.iter().filter(|(_, model)| !model.busy && model.is_changed());
        settling.map(|(name, _)| name.as_str())
    }

    /// A change of `name` is running or to be begun.
    pub fn is_changing(&self, name: &str) -> bool {
        self.models.get(name).is_some_and(|model| model.busy || model.is_changed())
    }

    /// No change is running or to be begun.
    pub fn is_settled(&self) -> bool {
        !self.models.keys().any(|name| self.is_changing(name))
    }

    /// As [`Self::is_changing`], of any model but `name`.
    pub fn others_are_changing(&self, name: &str) -> bool {
        self.models.keys().any(|other| other != name && self.is_changing(other))
    }

    /// What is to be begun at `now`. The caller reports its end by [`Self::ended`].
    pub fn due(&mut self, now: u64) -> Vec<(String, PollAction)> {
        let settle_ns = self.settle_ns;
        let due = self.models.iter_mut().filter(|(_, model)| {
            let at = model.due_at(settle_ns);
            at.is_some_and(|at| at <= now)
        });
        let begin = |(name, model): (&String, &mut ChangeEntry<F>)| {
            (model.busy, model.handled) = (true, Some(model.seen.clone()));
            let action = match model.seen {
                ModelLook::Absent => PollAction::Remove,
                ModelLook::Files(_) => PollAction::Load,
            };
            (name.clone(), action)
        };
        due.map(begin).collect()
    }

    /// When [`Self::due`] has something to return next.
    pub fn next_due(&self) -> Option<u64> {
        self.models.values().filter_map(|model| model.due_at(self.settle_ns)).min()
    }

    /// The load or removal of `name` has ended.
    pub fn ended(&mut self, name: &str) {
        let Some(model) = self.models.get_mut(name) else { return };
        model.busy = false;
        if model.seen == ModelLook::Absent && model.handled == Some(ModelLook::Absent) {
            self.models.remove(name);
        }
    }

    /// All loads are begun another time.
    pub fn retry_all(&mut self) {
        self.models.values_mut().for_each(|model| model.handled = None);
    }

    /// What made the load of `name` fail may have changed: it is begun another time.
    pub fn retry(&mut self, name: &str) {
        if let Some(model) = self.models.get_mut(name) {
            model.handled = None;
        }
    }
}

impl<F: PartialEq> ChangeEntry<F> {
    fn is_changed(&self) -> bool {
        self.handled.as_ref() != Some(&self.seen)
    }

    fn due_at(&self, settle_ns: u64) -> Option<u64> {
        (!self.busy && self.is_changed()).then(|| self.since.saturating_add(settle_ns))
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
