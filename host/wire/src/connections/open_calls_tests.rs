//! Unit tests of `open_calls.rs`.

use super::*;
use trtserver_base::budget::MemoryBudget;
use trtserver_base::error::Code;

const KIB: usize = 1 << 10;

fn limit(memory: usize, calls: usize) -> (&'static MemoryBudget, &'static OpenCallLimit) {
    let budget: &MemoryBudget = Box::leak(Box::new(MemoryBudget::new(memory)));
    let limit: &OpenCallLimit = Box::leak(Box::new(OpenCallLimit::new(budget)));
    limit.set_max(calls);
    (budget, limit)
}

/// Begins calls until one is refused. Returns how many were counted, and the refusal.
fn fill(calls: &ConnectionCalls, class: CallClass, bytes: usize) -> (Vec<CountedCall>, String) {
    let mut counted = Vec::new();
    loop {
        match calls.begin(class, bytes) {
            Ok(()) => counted.extend(calls.take_begun()),
            Err(error) => {
                assert_eq!(error.code, Code::ResourceExhausted);
                assert!(calls.take_begun().is_none());
                return (counted, error.message);
            }
        }
    }
}

#[test]
fn calls_beyond_a_quarter_of_the_budget_are_refused_and_given_back() {
    let (budget, limit) = limit(4000 * KIB, usize::MAX);
    let calls = ConnectionCalls::new(limit);
    let (counted, why) = fill(&calls, CallClass::Inference, 10 * KIB);
    assert_eq!((counted.len(), calls.open()), (100, 100));
    assert!(why.contains("--max-request-memory") && why.contains("1024000"), "{why}");
    assert_eq!(budget.in_use(), 1000 * KIB);
    for call in &counted[1..] {
        assert!(!calls.end(*call));
    }
    calls.trim();
    assert_eq!(budget.in_use(), 10 * KIB);
    assert!(calls.end(counted[0]));
    calls.trim();
    assert_eq!((calls.open(), budget.in_use()), (0, 0));
    assert_eq!(fill(&calls, CallClass::Inference, 10 * KIB).0.len(), 100);
    drop(calls);
    assert_eq!(budget.in_use(), 0);
}

#[test]
fn calls_beyond_their_number_are_refused_on_all_connections() {
    let (_, limit) = limit(usize::MAX, 100);
    let (first, second) = (ConnectionCalls::new(limit), ConnectionCalls::new(limit));
    let (counted, why) = fill(&first, CallClass::Inference, KIB);
    assert_eq!(counted.len(), 100);
    assert!(why.contains("100 of at most 100") && why.contains("--max-open-calls"), "{why}");
    // A few calls of each connection and class are not refused.
    assert_eq!(fill(&second, CallClass::Inference, KIB).0.len(), 16);
    assert_eq!(fill(&second, CallClass::Other, KIB).0.len(), 8);
    assert_eq!(fill(&first, CallClass::Other, 4 * KIB).0.len(), 8);
    drop((first, second));
    let third = ConnectionCalls::new(limit);
    assert_eq!(fill(&third, CallClass::Other, KIB).0.len(), 100);
}

#[test]
fn call_with_many_headers_is_not_among_those_that_are_never_refused() {
    let (budget, limit) = limit(400 * KIB, usize::MAX);
    let holder = ConnectionCalls::new(limit);
    assert_eq!(fill(&holder, CallClass::Inference, 100 * KIB).0.len(), 1);
    let calls = ConnectionCalls::new(limit);
    assert!(calls.begin(CallClass::Inference, 97 * KIB).is_err());
    assert!(calls.begin(CallClass::Inference, 90 * KIB).is_ok());
    assert!(calls.begin(CallClass::Inference, 7 * KIB).is_err());
    assert_eq!(budget.in_use(), 196 * KIB);
}

#[test]
fn idle_connection_draws_for_few_calls_ahead() {
    let (budget, limit) = limit(usize::MAX, usize::MAX);
    let calls = ConnectionCalls::new(limit);
    for _ in 0..3 {
        calls.begin(CallClass::Inference, 4 * KIB).unwrap();
        assert!(calls.end(calls.take_begun().unwrap()));
        assert_eq!(budget.in_use(), 8 * KIB);
    }
    calls.trim();
    assert_eq!(budget.in_use(), 0);
}

#[test]
fn calls_that_begin_while_others_are_given_back_stay_counted() {
    let (budget, limit) = limit(usize::MAX, usize::MAX);
    let calls = ConnectionCalls::new(limit);
    std::thread::scope(|scope| {
        let begins = scope.spawn(|| {
            for _ in 0..20_000 {
                let counted = [(); 3].map(|()| {
                    calls.begin(CallClass::Inference, KIB).unwrap();
                    calls.take_begun().unwrap()
                });
                assert!(budget.in_use() >= 3 * KIB);
                for call in counted {
                    calls.end(call);
                }
            }
        });
        while !begins.is_finished() {
            calls.trim();
        }
    });
    calls.trim();
    assert_eq!(budget.in_use(), 0);
}

#[test]
fn loads_are_packed_without_loss() {
    for load in [(0, 0), (1, 4096), (1000, 128_000_000), ((1 << 20) - 1, (1 << 44) - 1)] {
        let load = CallLoad { calls: load.0, bytes: load.1 };
        assert_eq!(CallLoad::unpack(load.pack()), load);
    }
}
