//! Unit tests of `sampler.rs`.

use super::*;

fn read(name: &str, argument: &str) -> Result<Option<TraceSampler>, String> {
    TraceSampler::read(&|variable| {
        let value = if variable == "OTEL_TRACES_SAMPLER" { name } else { argument };
        (!value.is_empty()).then(|| value.to_owned())
    })
}

#[test]
fn samplers_by_name() {
    use {ParentRule::*, RootRule::*};
    let table = [
        ("always_on", "", Ignored, RootRule::Always),
        ("always_off", "", Ignored, Never),
        ("traceidratio", "0.25", Ignored, Ratio(0.25)),
        ("traceidratio", "", Ignored, Ratio(1.0)),
        ("parentbased_always_on", "", Based, RootRule::Always),
        ("parentbased_always_off", "", Based, Never),
        ("parentbased_traceidratio", " 0 ", Based, Ratio(0.0)),
    ];
    for (name, argument, parent, root) in table {
        assert_eq!(read(name, argument), Ok(Some(TraceSampler { parent, root })), "{name}");
    }
    assert_eq!(read("", "0.5"), Ok(None));
    for argument in ["2", "-0.1", "x", "NaN"] {
        let error = read("traceidratio", argument).unwrap_err();
        assert!(error.contains("OTEL_TRACES_SAMPLER_ARG") && error.contains(argument), "{error}");
    }
    let error = read("jaeger_remote", "").unwrap_err();
    assert!(error.contains("OTEL_TRACES_SAMPLER:") && error.contains("jaeger_remote"), "{error}");
}

#[test]
fn callers_and_rules() {
    let decide =
        |parent, root, caller| TraceSampler { parent, root }.decide(caller, || TraceId([7; 16]));
    let table = [
        (ParentRule::Based, RootRule::Rate, None, None),
        (ParentRule::Based, RootRule::Rate, Some(true), Some(true)),
        (ParentRule::Based, RootRule::Always, Some(false), Some(false)),
        (ParentRule::Always, RootRule::Never, Some(false), Some(true)),
        (ParentRule::Always, RootRule::Never, None, Some(false)),
        (ParentRule::Ignored, RootRule::Never, Some(true), Some(false)),
        (ParentRule::Ignored, RootRule::Rate, Some(true), None),
    ];
    for (parent, root, caller, decision) in table {
        assert_eq!(decide(parent, root, caller), decision, "{parent:?} {root:?} {caller:?}");
    }
}

#[test]
fn a_ratio_takes_its_share() {
    let sampler = TraceSampler { parent: ParentRule::Based, root: RootRule::Ratio(0.25) };
    let count = (0..10_000).filter(|_| sampler.decide(None, TraceId::random) == Some(true));
    let share = count.count();
    // Six standard deviations.
    assert!((2240..=2760).contains(&share), "{share} of 10000");
}
