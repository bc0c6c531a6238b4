//! Unit tests of `session_config.rs`.

use super::*;

fn config<'a>(
    level: i32,
    settings: &[(&'a str, &'a str)],
    params: &[(&'a str, &'a str)],
) -> Result<SessionConfig, PluginFault> {
    SessionConfig::new(3, level, settings.iter().copied(), params.iter().copied())
}

#[test]
fn default_is_the_thread_budget_with_pools_of_the_session() {
    let config = config(0, &[("library", "x")], &[("other", "y")]).unwrap();
    assert_eq!((config.intra_threads, config.inter_threads), (3, 1));
    // intra 3, inter 1, gpu_options { allow_growth }, soft placement, per-session threads,
    // graph_options { optimizer_options { global_jit_level: 0 } }
    let bytes = [16, 3, 40, 1, 50, 2, 32, 1, 56, 1, 72, 1, 82, 4, 26, 2, 40, 0];
    assert_eq!(config.encode(), bytes);
}

#[test]
fn settings_and_parameters_are_encoded() {
    let config = config(
        -5,
        &[("allow-soft-placement", "false"), ("gpu-memory-fraction", "0.5")],
        &[
            ("TF_NUM_INTRA_THREADS", "8"),
            ("TF_NUM_INTER_THREADS", "2"),
            ("TF_USE_PER_SESSION_THREADS", "Off"),
            ("TF_GRAPPLER", "0"),
        ],
    );
    let off = [40, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    let bytes = [
        &[16, 8, 40, 2, 50, 9][..],
        &[9, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f],
        &[56, 0, 72, 0, 82, 18, 26, 11],
        &off,
        &[82, 3, 152, 1, 1],
    ]
    .concat();
    assert_eq!(config.unwrap().encode(), bytes);
}

#[test]
fn optimisation_level_is_that_of_xla() {
    for (level, xla) in [(i32::MIN, -1), (-1, -1), (0, 0), (1, 1), (2, 2), (9, 2)] {
        assert_eq!(config(level, &[], &[]).unwrap().xla, xla);
    }
}

#[test]
fn unreadable_values_are_named() {
    for (settings, params, text) in [
        (vec![("gpu-memory-fraction", "1.5")], vec![], "setting 'gpu-memory-fraction' must be"),
        (vec![("gpu-memory-fraction", "NaN")], vec![], "must be a number from 0 to 1, not 'NaN'"),
        (vec![("allow-soft-placement", "yes")], vec![], "must be true or false, not 'yes'"),
        (vec![], vec![("TF_NUM_INTRA_THREADS", "-1")], "a number of threads, not '-1'"),
        (vec![], vec![("TF_GRAPPLER", "")], "parameter 'TF_GRAPPLER' must be true or false"),
    ] {
        let error = config(0, &settings, &params).unwrap_err().text;
        assert!(error.contains(text), "{error}");
    }
}
