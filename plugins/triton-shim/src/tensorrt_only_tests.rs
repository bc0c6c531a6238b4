//! Unit tests of `tensorrt_only.rs`.

use super::check;

#[test]
fn other_backends_have_no_settings_of_tensorrt() {
    let group = "instance group g of model m specifies a profile, which is supported only on TensorRT models";
    for (config, expected) in [
        ("", ""),
        (r#"{"input":[{"is_shape_tensor":false}],"instance_group":[{"profile":[]}]}"#, ""),
        (
            r#"{"input":[{"is_shape_tensor":false},{"is_shape_tensor":true}]}"#,
            "shape tensors are only supported for TensorRT platform for m",
        ),
        (
            r#"{"output":[{"is_non_linear_format_io":true}]}"#,
            "Non-linear IO format is only supported for the TensorRT platform for m",
        ),
        (r#"{"platform":"tensorrt_plan","input":[{"is_shape_tensor":true}]}"#, ""),
        (r#"{"instance_group":[{"name":"f"},{"name":"g","profile":["0"]}]}"#, group),
    ] {
        let found = check("python", "m", config).err().map(|fault| fault.text).unwrap_or_default();
        assert_eq!(found, expected, "{config}");
        assert!(check("tensorrt", "m", config).is_ok(), "{config}");
    }
}
