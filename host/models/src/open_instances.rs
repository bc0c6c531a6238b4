//! The instances of an open version, and what is needed to open more of them. A change of the
//! instance groups opens and closes instances while the unchanged instances serve.

use crate::instance::group::InstancePlan;
use parking_lot::{Mutex, MutexGuard};
use std::sync::{Arc, Weak};
use trtserver_model_store::ModelDir;
use trtserver_plugin_api::abi::extensions::BatchSize;
use trtserver_plugin_host::TensorNames;
use trtserver_plugin_host::model::BackendModel;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_request::ModelSignature;
use trtserver_scheduler::RequestQueue;
use trtserver_scheduler::batcher::settings::PreparedSize;

/// The instances of an open version, and the means to open and close instances while it serves.
/// Closes the queue when it is dropped: the instances execute what is queued, then close.
pub struct OpenInstances {
    pub(super) queue: Arc<RequestQueue>,
    pub(super) signature: Arc<ModelSignature>,
    pub(super) names: Arc<TensorNames>,
    opened: OpenResources,
    /// By number.
    all: Mutex<Vec<InstanceEntry>>,
    /// The sizes that all instances are prepared for; `None` before the first is open.
    batch_sizes: Mutex<Option<Vec<BatchSize>>>,
}

/// What the backend has opened for a version. The instances keep it open.
#[derive(Default)]
pub struct OpenResources {
    /// Model files and the backend's models.
    pub models: Vec<(String, Weak<BackendModel>)>,
    pub dir: Weak<ModelDir>,
}

struct InstanceEntry {
    plan: InstancePlan,
    /// Dropped when its thread ends.
    thread: Weak<()>,
    /// It executes no further batch.
    removed: bool,
}

/// How the instances of an open version change.
pub struct InstanceChange {
    pub open: Vec<InstancePlan>,
    /// Numbers.
    pub close: Vec<usize>,
}

impl OpenInstances {
    pub fn new(
        queue: &Arc<RequestQueue>,
        signature: &Arc<ModelSignature>,
        opened: OpenResources,
    ) -> Arc<Self> {
        let names = Arc::new(TensorNames::new(signature));
        let (queue, signature) = (Arc::clone(queue), Arc::clone(signature));
        let (all, batch_sizes) = (Mutex::default(), Mutex::default());
        Arc::new(Self { queue, signature, names, opened, all, batch_sizes })
    }

    /// Takes a number for a further instance: the number of an instance whose thread has ended,
    /// else the next. The result must be dropped when the thread ends.
    pub(super) fn add(&self, plan: InstancePlan) -> (usize, Arc<()>) {
        let mut all = self.all();
        let ended = |of: &InstanceEntry| of.removed && of.thread.strong_count() == 0;
        let number = all.iter().position(ended).unwrap_or(all.len());
        let alive = Arc::new(());
        let added = InstanceEntry { plan, thread: Arc::downgrade(&alive), removed: false };
        match all.get_mut(number) {
            Some(place) => *place = added,
            None => all.push(added),
        }
        // Under the lock: numbers are added to the queue in order.
        self.queue.add_instance(number);
        (number, alive)
    }

    /// Closes an instance after its batch. Others execute what is queued.
    pub(super) fn remove(&self, number: usize) {
        if let Some(instance) = self.all().get_mut(number) {
            instance.removed = true;
        }
        self.queue.remove_instance(number);
    }

    /// All instances have smaller numbers. Numbers of closed instances are used again, so this does
    /// not grow with the number of changes.
    pub(super) fn used_numbers(&self) -> usize {
        self.all().len()
    }

    /// Number of instances.
    pub(super) fn count(&self) -> usize {
        self.all().iter().filter(|instance| !instance.removed).count()
    }

    /// What its instances are, in the order of their numbers.
    pub fn plans(&self) -> Vec<InstancePlan> {
        let all = self.all();
        all.iter().filter(|instance| !instance.removed).map(|i| i.plan.clone()).collect()
    }

    /// What changes if the version is to have the instances of `plans`.
    pub(super) fn change_to(&self, plans: Vec<InstancePlan>) -> InstanceChange {
        let (mut open, mut close) = (plans, Vec::new());
        for (number, instance) in self.all().iter().enumerate().filter(|(_, i)| !i.removed) {
            match open.iter().position(|plan| plan.is_same(&instance.plan)) {
                Some(kept) => drop(open.remove(kept)),
                None => close.push(number),
            }
        }
        InstanceChange { open, close }
    }

    /// Whether `change` is possible while the version serves: it concerns only instances on the
    /// CPU, and the model has no sequences, which belong to instances.
    pub(super) fn can(&self, change: &InstanceChange) -> bool {
        let all = self.all();
        let close = change.close.iter().filter_map(|number| Some(&all.get(*number)?.plan));
        let on_cpu =
            |plan: &InstancePlan| plan.kind == Kind::Cpu && self.model(&plan.file).is_some();
        change.open.iter().chain(close).all(on_cpu) && !self.queue.is_sequence()
    }

    /// Ends the low priority of loads in the processes of an isolated model.
    pub(super) fn end_low_priority(&self) {
        let models = self.opened.models.iter().filter_map(|(_, model)| model.upgrade());
        models.for_each(|model| model.end_low_priority());
    }

    /// Further instances are open, which are prepared for these sizes. The queue forms batches for
    /// them if all instances have the same.
    pub(super) fn prepared_for(&self, opened: &[Vec<BatchSize>]) {
        let mut known = self.batch_sizes.lock();
        let first = known.as_ref().or(opened.first()).cloned().unwrap_or_default();
        let rows = |sizes: &[BatchSize]| sizes.iter().map(|size| size.rows).collect::<Vec<_>>();
        let same = opened.iter().all(|sizes| rows(sizes) == rows(&first));
        let common = if same { first } else { Vec::new() };
        let prepared = |size: &BatchSize| PreparedSize { rows: size.rows, run_ns: size.run_ns };
        if !common.is_empty() && known.is_none() {
            let model = &self.signature.model;
            tracing::info!("model '{model}': batches are formed for {:?} rows", rows(&common));
        }
        self.queue.set_prepared_sizes(common.iter().map(prepared).collect());
        *known = Some(common);
    }

    /// The backend's model of a file.
    pub(super) fn model(&self, file: &str) -> Option<Arc<BackendModel>> {
        let (_, model) = self.opened.models.iter().find(|(of, _)| of == file)?;
        model.upgrade()
    }

    pub(super) fn dir(&self) -> Option<Arc<ModelDir>> {
        self.opened.dir.upgrade()
    }

    fn all(&self) -> MutexGuard<'_, Vec<InstanceEntry>> {
        self.all.lock()
    }
}

impl Drop for OpenInstances {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// A change of the instances of a serving version: the new instances are open. They are closed
/// unless the change is completed.
pub struct InstanceResize {
    pub(super) instances: Arc<OpenInstances>,
    pub(super) opened: Vec<usize>,
    pub(super) close: Vec<usize>,
}

impl InstanceResize {
    /// Closes the surplus instances.
    pub(super) fn complete(mut self) {
        self.opened.clear();
        self.close.iter().for_each(|number| self.instances.remove(*number));
    }
}

impl Drop for InstanceResize {
    fn drop(&mut self) {
        self.opened.iter().for_each(|number| self.instances.remove(*number));
    }
}
