//! Unit tests of `figures.rs`.

use super::*;
use crate::ceilings::NONE;

fn ceiling() -> Ceiling {
    Ceiling {
        row: "v2-http 64",
        allocations: 10.0,
        allocated: 1000.0,
        copied: 0.0,
        syscalls: NONE,
        instructions: 20_000.0,
        atomics: NONE,
    }
}

#[test]
fn figures_above_fail_and_figures_far_below_are_reported() {
    let figures = Figures {
        allocations: Some(10.1),
        allocated: Some(999.0),
        copied: Some(0.0),
        syscalls: Some(5.0),
        instructions: Some(15_000.0),
        ..Figures::default()
    };
    let (above, far_below) = judge(&[ceiling()], &[figures]);
    assert_eq!(above, ["v2-http 64: 10.10 allocations, the ceiling is 10.00"]);
    assert_eq!(far_below, ["v2-http 64: 15000 instructions, the ceiling is 20000"]);
}

#[test]
fn missing_figures_are_not_judged_and_keep_their_ceiling() {
    let figures = Figures { allocations: Some(5.0), ..Figures::default() };
    let (above, _) = judge(&[ceiling()], std::slice::from_ref(&figures));
    assert!(above.is_empty());
    let line = "    Ceiling { row: \"v2-http 64\", allocations: 5.5, allocated: 1_000.0, \
                copied: 0.0, syscalls: NONE, instructions: 20_000.0, atomics: NONE },\n";
    assert_eq!(as_source(&[ceiling()], &[figures]), line);
}
