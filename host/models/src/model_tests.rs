//! Unit tests of `model.rs`.

use super::Model;
use crate::lifecycle::ModelVersion;
use crate::testing::served_by;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_base::stats::VersionStats;
use trtserver_base::timer::DeadlineTimer;
use trtserver_proto::v2::ModelConfig;
use trtserver_request::ModelSignature;
use trtserver_scheduler::{RequestQueue, SchedulingPolicy};

const ROUNDS: usize = 200;
/// Versions between the two are never ready: the search for the latest one takes long enough for
/// the other thread.
const LAST: i64 = 200;

/// The thread of the first version found it to be the latest before the last one was ready, and
/// stored that afterwards.
#[test]
fn latest_version_is_the_highest_of_those_that_became_ready_at_once() {
    let config = Arc::new(ModelConfig { name: "m".into(), ..ModelConfig::default() });
    let signature = ModelSignature::new(&config, |_| None).unwrap_or_else(|e| panic!("{e}"));
    let signature = Arc::new(signature);
    let new_model = |_| {
        let version = |n| (n, ModelVersion::new(n, Arc::new(VersionStats::new(1))));
        let versions = (1..=LAST).map(version).collect();
        Model::new("m", Some(Arc::clone(&config)), None, versions)
    };
    let models: Vec<_> = (0..ROUNDS).map(new_model).collect();
    let arrived = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for number in [1, LAST] {
            let (models, arrived, config, signature) = (&models, &arrived, &config, &signature);
            threads.spawn(move || {
                for (round, model) in models.iter().enumerate() {
                    let version = &model.versions[&number];
                    let policy = SchedulingPolicy::Dynamic(Default::default());
                    let queue =
                        RequestQueue::new(policy, signature, 1, false, DeadlineTimer::leak());
                    let served = served_by(queue, config, signature, version, None);
                    // Both threads go on at the same time, which a wake-up would prevent.
                    arrived.fetch_add(1, Ordering::AcqRel);
                    while arrived.load(Ordering::Acquire) < 2 * (round + 1) {
                        std::hint::spin_loop();
                    }
                    // The last version becomes ready a little later, each time at another point of
                    // the search.
                    let spins = if number == LAST { round } else { 0 };
                    (0..spins).for_each(|_| std::hint::spin_loop());
                    model.set_ready(version, served);
                }
            });
        }
    });
    let latest = |model: &Arc<Model>| model.latest.load().as_deref().map(|v| v.version);
    let wrong = models.iter().filter(|model| latest(model) != Some(LAST)).count();
    assert_eq!(wrong, 0, "of {ROUNDS} models");
}
