//! Unit tests of `options.rs`.

use super::*;

fn options(params: &[(&str, &str)]) -> Result<Options, PluginFault> {
    Options::new(3, 0, params.iter().copied(), vec![("session.x".into(), "0".into())])
}

#[test]
fn parameters_override_thread_budget() {
    let plain = options(&[("priority", "high")]).unwrap();
    assert_eq!((plain.intra_threads, plain.inter_threads, plain.arena), (3, 1, true));
    assert_eq!(plain.entries, [("session.x".into(), "0".into())]);
    let set = options(&[
        ("intra_op_thread_count", "0"),
        ("execution_mode", "1"),
        ("enable_mem_arena", "0"),
    ])
    .unwrap();
    assert_eq!((set.intra_threads, set.mode, set.arena), (0, ExecutionMode::ORT_PARALLEL, false));
}

#[test]
fn invalid_values_name_the_parameter() {
    for (key, value) in [("intra_op_thread_count", "-1"), ("enable_mem_pattern", "yes")] {
        let fault = options(&[(key, value)]).unwrap_err();
        assert!(fault.text.contains(key) && fault.text.contains(value), "{fault}");
    }
}

#[test]
fn graph_levels() {
    use GraphOptimizationLevel as G;
    let expected = [
        (-1, G::ORT_DISABLE_ALL),
        (0, G::ORT_ENABLE_ALL),
        (1, G::ORT_ENABLE_BASIC),
        (2, G::ORT_ENABLE_EXTENDED),
        (7, G::ORT_ENABLE_ALL),
    ];
    for (level, requested) in expected {
        assert_eq!(parse_graph_level(level), requested);
    }
}
