//! Tests of the deadlines that a client's settings and the environment give.

use super::*;
use crate::{Settings, v1, v2};
use std::time::Instant;

fn given(value: &str) -> Result<DeadlineLimits> {
    from_variable(Some(OsStr::new(value)))
}

#[test]
fn the_environment_gives_the_deadline_of_every_call() {
    let seconds = |s| Some(Duration::from_secs_f64(s));
    assert_eq!(
        from_variable(None).unwrap(),
        DeadlineLimits { call: seconds(60.0), load: seconds(600.0) }
    );
    assert_eq!(given("900").unwrap(), DeadlineLimits::same(seconds(900.0)));
    assert_eq!(given(" 0.25 ").unwrap(), DeadlineLimits::same(seconds(0.25)));
    assert_eq!(given("0").unwrap(), DeadlineLimits::same(None));
    for wrong in ["", "soon", "-1", "10s", "inf", "nan", "1e300"] {
        let error = given(wrong).unwrap_err();
        let expected = format!("environment variable TRTSERVER_CLIENT_DEADLINE is '{wrong}', ");
        assert!(error.message().starts_with(&expected), "{error}");
    }
}

#[test]
fn loading_a_model_may_take_longer() {
    let settings = Settings::new("localhost:1");
    let (v1, v2) = (v1::Client::new(&settings).unwrap(), v2::Client::new(&settings).unwrap());
    let seconds = |at: Option<Instant>| (at.unwrap() - Instant::now()).as_secs_f64().ceil();
    assert_eq!([v1.deadline_now(), v2.deadline_now()].map(seconds), [60.0; 2]);
    assert_eq!([v1.loading().deadline_now(), v2.loading().deadline_now()].map(seconds), [600.0; 2]);
    let short = Some(Duration::from_secs(5));
    let given = [
        v1.with_deadline(short).loading().deadline_now(),
        v2.with_deadline(short).loading().deadline_now(),
    ];
    assert_eq!(given.map(seconds), [5.0; 2]);
}

#[test]
fn a_deadline_of_the_program_is_that_of_every_call() {
    let limit = Some(Duration::from_secs(5));
    assert_eq!(Deadline::from(limit).limits().unwrap(), DeadlineLimits::same(limit));
    assert_eq!(Deadline::from(None).limits().unwrap(), DeadlineLimits::same(None));
}
