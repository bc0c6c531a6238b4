//! Unit tests of `mod.rs` and `grant.rs`.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_base::stats::ExecutionHold;

pub(crate) fn admit(limiter: &Arc<RateLimiter>, model: &str, count: u64) -> LimiterMember {
    let demand = ResourceDemand { name: "r".to_owned(), count, global: false };
    let limits = InstanceLimits { resources: vec![demand], priority: 1 };
    let name = LimitedName { model: model.into(), version: 1, instance: format!("{model}_0") };
    limiter.admit(name, &limits, -1).unwrap().unwrap()
}

#[derive(Default)]
struct CountGrants(AtomicUsize);

impl GrantObserver for CountGrants {
    fn execution_granted(&self, _: usize) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn granted(limit: &LimiterMember) -> Arc<ExecutionGrant> {
    match limit.ask(0) {
        GrantAnswer::Granted(grant) => grant,
        GrantAnswer::Waiting { .. } => panic!("not granted"),
    }
}

#[test]
fn resources_are_given_back_in_every_order() {
    // What happens to a grant; after the last step its resources are free.
    type Step = fn(Arc<ExecutionGrant>, &LimiterMember) -> Option<Arc<ExecutionGrant>>;
    let finish: Step = |grant, _| {
        grant.finished();
        Some(grant)
    };
    let return_it: Step = |grant, limit| {
        let kept = Arc::clone(&grant);
        grant.returned(limit, false, 0).wake();
        Some(kept)
    };
    let lose: Step = |_, _| None;
    let orders: [(&str, &[Step]); 4] = [
        ("finished, then returned", &[finish, return_it]),
        ("returned, then finished", &[return_it, finish]),
        ("lost", &[lose]),
        ("returned, then lost", &[return_it, lose]),
    ];
    for (name, steps) in orders {
        let limiter = RateLimiter::new(Vec::new());
        let (first, second) = (admit(&limiter, "a", 1), admit(&limiter, "b", 1));
        let told = Arc::new(CountGrants::default());
        let observer: Arc<dyn GrantObserver> = Arc::<CountGrants>::clone(&told);
        second.observe(Arc::downgrade(&observer), 0);
        let mut grant = Some(granted(&first));
        assert!(matches!(second.ask(0), GrantAnswer::Waiting { new: true }), "{name}");
        for step in steps {
            assert_eq!(told.0.load(Ordering::Relaxed), 0, "{name}");
            grant = grant.and_then(|grant| step(grant, &first));
        }
        assert_eq!(told.0.load(Ordering::Relaxed), 1, "{name}");
        granted(&second);
    }
}

#[test]
fn instances_without_demand_are_not_limited() {
    let limiter = RateLimiter::new(Vec::new());
    let name = LimitedName { model: "m".into(), version: 1, instance: "m_0".to_owned() };
    assert!(limiter.admit(name, &InstanceLimits::default(), 0).unwrap().is_none());
    let limit = admit(&limiter, "m", 1);
    assert_eq!(limiter.report().resources.len(), 1);
    drop(limit);
    assert_eq!(limiter.report(), LimiterReport::default());
}

#[test]
fn unused_grant_is_given_back() {
    let limiter = RateLimiter::new(Vec::new());
    let (first, second) = (admit(&limiter, "a", 1), admit(&limiter, "b", 1));
    let grant = granted(&first);
    first.give_back(&grant).wake();
    granted(&second);
    drop(grant);
    assert_eq!(limiter.report().instances[0].executions, 0);
}
