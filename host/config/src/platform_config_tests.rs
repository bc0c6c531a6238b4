//! Unit tests of `platform_config.rs`.

use super::*;

fn graphdef(session: &str) -> String {
    format!(
        "platform_configs {{ key: \"tensorflow_graphdef\" value {{ source_adapter_config {{
  [type.googleapis.com/nvidia.inferenceserver.GraphDefBundleSourceAdapterConfig] {{
    session_config {{ {session} }} }} }} }} }}\n"
    )
}

#[test]
fn session_configurations_become_settings_of_tensorflow() {
    let fraction =
        "gpu_options { per_process_gpu_memory_fraction: 0.25 } allow_soft_placement: true";
    for (session, expected) in [
        (fraction, &[("allow-soft-placement", "true"), ("gpu-memory-fraction", "0.25")][..]),
        ("gpu_options { allow_growth: true }", &[("gpu-memory-fraction", "0")]),
        ("allow_soft_placement: false", &[("allow-soft-placement", "false")]),
        ("", &[]),
    ] {
        let settings = parse_platform_config(&graphdef(session), true).unwrap();
        let settings: Vec<_> =
            settings["tensorflow"].iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(settings, expected, "{session}");
    }
}

#[test]
fn what_has_no_counterpart_is_refused() {
    let plan = |fields: &str| {
        format!(
            "platform_configs {{ key: \"tensorrt_plan\" value {{ source_adapter_config {{
  [type.googleapis.com/nvidia.inferenceserver.PlanBundleSourceAdapterConfig] {{ {fields} }} }} }} }}"
        )
    };
    let saved = graphdef("allow_soft_placement: false")
        .replace("tensorflow_graphdef", "tensorflow_savedmodel")
        .replace("GraphDef", "SavedModel");
    let both = graphdef("allow_soft_placement: true") + &saved;
    assert!(parse_platform_config(&plan("autofill: true"), false).unwrap().is_empty());
    for (text, error) in [
        (plan("autofill: true"), "platform 'tensorrt_plan' asks for autofill"),
        (both, "allow-soft-placement is true for one platform of TensorFlow and false"),
        (plan("").replace("tensorrt_plan", "x"), "unknown platform 'x'"),
        (plan("").replace("tensorrt_plan", "custom"), "the configuration of another platform"),
        (graphdef("log_device_placement: true"), "3:22: ConfigProto has no field log_device"),
        ("[type.googleapis.com/".to_owned(), "1:1: expected a field name"),
    ] {
        let found = parse_platform_config(&text, true).unwrap_err();
        assert!(found.contains(error), "{text}: {found}");
    }
}
