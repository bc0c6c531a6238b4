//! Unit tests of `options.rs`.

use super::*;

fn read(parameters: &[(&str, &str)], cache: Option<&str>) -> Result<Options, PluginFault> {
    Options::read(parameters.iter().copied(), cache)
}

fn properties(parameters: &[(&str, &str)], device: &str) -> String {
    let budget = Budget { threads: 3, instances: 2 };
    let all = read(parameters, None).unwrap().properties(device, budget);
    all.iter().map(|(key, value)| format!("{key}={value} ")).collect()
}

#[test]
fn properties_follow_budget_and_parameters() {
    for (parameters, device, expected) in [
        (
            &[][..],
            "CPU",
            "NUM_STREAMS=2 INFERENCE_NUM_THREADS=6 INFERENCE_PRECISION_HINT=f32 ENABLE_CPU_PINNING=NO ",
        ),
        (&[], "GPU", ""),
        (
            &[("NUM_STREAMS", "auto"), ("HINT_BF16", "YES")],
            "GPU",
            "NUM_STREAMS=AUTO INFERENCE_PRECISION_HINT=bf16 ",
        ),
        (
            &[("NUM_STREAMS", "numa"), ("INFERENCE_NUM_THREADS", "1"), ("HINT_BF16", "yes")],
            "CPU",
            "NUM_STREAMS=NUMA INFERENCE_NUM_THREADS=1 INFERENCE_PRECISION_HINT=bf16 ENABLE_CPU_PINNING=NO ",
        ),
        (
            &[("PERFORMANCE_HINT", "throughput"), ("EXECUTION_MODE_HINT", "PERFORMANCE")],
            "CPU",
            "PERFORMANCE_HINT_NUM_REQUESTS=2 INFERENCE_NUM_THREADS=6 ENABLE_CPU_PINNING=NO \
             PERFORMANCE_HINT=THROUGHPUT EXECUTION_MODE_HINT=PERFORMANCE ",
        ),
        // A parameter of the host, or of a client.
        (&[("max_queue", "x"), ("num_streams", "x")], "GPU", ""),
    ] {
        assert_eq!(properties(parameters, device), expected);
    }
}

#[test]
fn two_threads_are_the_least() {
    let all = read(&[], None).unwrap().properties("CPU", Budget { threads: 1, instances: 1 });
    assert!(all.contains(&("INFERENCE_NUM_THREADS", "2".to_owned())), "{all:?}");
}

#[test]
fn devices() {
    let plain = read(&[], None).unwrap();
    assert_eq!((plain.device_for(false), plain.device_for(true)), ("CPU", "AUTO"));
    for key in ["device", "TARGET_DEVICE"] {
        let given = read(&[(key, "GPU.1")], None).unwrap();
        assert_eq!((given.device_for(false), given.device_for(true)), ("GPU.1", "GPU.1"));
    }
    let both = [("device", "GPU"), ("TARGET_DEVICE", "GPU")];
    assert_eq!(read(&both, None).unwrap().device_for(false), "GPU");
}

#[test]
fn compiled_models_are_written_where_the_operator_says() {
    let cache = |parameters: &[(&str, &str)], dir| read(parameters, dir).map(|own| own.cache);
    assert_eq!(cache(&[], None), Ok(None));
    assert_eq!(cache(&[], Some("/c")), Ok(Some("/c".into())));
    assert_eq!(cache(&[("CACHE_DIR", "a/b")], Some("/c")), Ok(Some("/c/a/b".into())));
    assert_eq!(cache(&[("CACHE_DIR", "NO")], Some("/c")), Ok(None));
    for (value, dir, expected) in [
        ("a", None, "cache-dir=PATH, and that is not set"),
        ("../a", Some("/c"), "expected a name below the folder"),
        ("/a", Some("/c"), "expected a name below the folder"),
    ] {
        let refused = cache(&[("CACHE_DIR", value)], dir).unwrap_err().text;
        assert!(refused.contains(expected), "{refused}");
    }
    let all = read(&[], Some("/c")).unwrap().properties("GPU", Budget { threads: 1, instances: 1 });
    assert_eq!(all, [("CACHE_DIR", "/c".to_owned())]);
}

#[test]
fn wrong_values_are_refused() {
    for (parameters, expected) in [
        (
            &[("NUM_STREAMS", "many")][..],
            "parameter 'NUM_STREAMS' is 'many', expected a number, AUTO or NUMA",
        ),
        (
            &[("INFERENCE_NUM_THREADS", "-1")],
            "'INFERENCE_NUM_THREADS' is '-1', expected a number, 0 or more",
        ),
        (&[("HINT_BF16", "maybe")], "'HINT_BF16' is 'maybe', expected YES or NO"),
        (&[("RESHAPE_IO_LAYERS", "")], "'RESHAPE_IO_LAYERS' is '', expected YES or NO"),
        (&[("device", "")], "'device' is '', expected a device such as CPU"),
        (
            &[("device", "CPU"), ("TARGET_DEVICE", "GPU")],
            "another parameter names the device 'CPU'",
        ),
        (&[("PERFORMANCE_HINT", "")], "'PERFORMANCE_HINT' is '', expected a value"),
    ] {
        let refused = read(parameters, None).unwrap_err().text;
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn padding_has_no_effect() {
    let options =
        read(&[("ENABLE_BATCH_PADDING", "YES"), ("SKIP_OV_DYNAMIC_BATCHSIZE", "yes")], None);
    let options = options.unwrap();
    assert!(
        options.fixed_batch && options.notes[0].contains("'ENABLE_BATCH_PADDING' has no effect")
    );
    assert!(read(&[("ENABLE_BATCH_PADDING", "NO")], None).unwrap().notes.is_empty());
}
