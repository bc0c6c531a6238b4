//! Unit tests of `trial.rs`.

use super::*;

#[test]
fn generation_is_the_one_that_understands_the_call() {
    use TrialOutcome::{Crashed, Failed, Succeeded, Unknown};
    let (b, c) = (Some(Generation::V0_12), Some(Generation::V1_0));
    for (as_b, as_c, want) in [
        (Succeeded, None, b),
        (Unknown, None, b),
        (Crashed(6), Some(Succeeded), c),
        (Failed, Some(Succeeded), c),
        // Its own errors and crashes.
        (Failed, Some(Failed), b),
        (Failed, Some(Crashed(11)), b),
        (Failed, Some(Unknown), b),
        (Crashed(11), Some(Failed), None),
        (Crashed(11), Some(Crashed(11)), None),
        (Crashed(11), Some(Unknown), None),
    ] {
        let report = TrialReport::new(|generation| {
            if generation == Generation::V0_12 { as_b } else { as_c.unwrap_or(Succeeded) }
        });
        assert_eq!((report.as_b, report.as_c, report.generation()), (as_b, as_c, want));
    }
    let report = TrialReport { as_b: Crashed(11), as_c: Some(Failed) };
    let end = "its initialise ends with signal 11 as one of generation B (v0.12), and fails as one of generation C (v1.0 \
               and later)";
    assert!(report.to_string().ends_with(end), "{report}");
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
