//! Unit tests of `trial.rs`.

use super::*;

#[test]
fn generation_is_the_one_that_understands_the_call() {
    use TrialOutcome::{Crashed, Failed, Succeeded, Unknown};
    for (as_b, as_c, want, both) in [
        (Succeeded, Succeeded, Generation::V0_12, false),
        (Unknown, Succeeded, Generation::V0_12, false),
        (Crashed(6), Succeeded, Generation::V1_0, true),
        (Crashed(11), Failed, Generation::V1_0, true),
        (Failed, Succeeded, Generation::V1_0, true),
        // Its own errors and crashes.
        (Failed, Failed, Generation::V0_12, true),
        (Failed, Crashed(11), Generation::V0_12, true),
        (Crashed(11), Crashed(11), Generation::V0_12, true),
        (Crashed(11), Unknown, Generation::V0_12, true),
    ] {
        let call = |as_generation| if as_generation == Generation::V0_12 { as_b } else { as_c };
        let (found, b, c) = try_generations(call);
        assert_eq!((found, b, c.is_some()), (want, as_b, both), "{as_b:?} {as_c:?}");
    }
}

#[test]
fn calls_end_in_a_copy_of_the_process() {
    let mut value = 1;
    assert_eq!(call_in_copy(|| 0), TrialOutcome::Succeeded);
    assert_eq!(call_in_copy(|| 7), TrialOutcome::Failed);
    let changes = || {
        value = 2;
        0
    };
    assert_eq!(call_in_copy(changes), TrialOutcome::Succeeded);
    assert_eq!(value, 1);
    // SAFETY: ends the copy.
    let abort = || unsafe { libc::abort() };
    assert_eq!(call_in_copy(abort), TrialOutcome::Crashed(libc::SIGABRT));
    // SAFETY: ends the copy.
    let exit = || unsafe { libc::_exit(3) };
    assert_eq!(call_in_copy(exit), TrialOutcome::Failed);
}
