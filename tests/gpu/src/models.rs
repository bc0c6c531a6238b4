//! Configurations of models of the test backend `ptx`, which runs kernels on a GPU.

/// OUTPUT0 = INPUT0 + INPUT1, of floats, on the GPUs of `group`. `parameters` are those of the
/// backend.
pub fn add(name: &str, group: &str, parameters: &[(&str, &str)]) -> String {
    let tensor = |kind: &str, name: &str| {
        format!("{kind} {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ -1 ] }}\n")
    };
    let parameter = |(key, value): &(&str, &str)| {
        format!("parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}\n")
    };
    let parameters: String = parameters.iter().map(parameter).collect();
    format!(
        "name: \"{name}\"\nbackend: \"ptx\"\nmax_batch_size: 8\ninstance_group {{ {group} }}\n{}{}{}{parameters}",
        tensor("input", "INPUT0"),
        tensor("input", "INPUT1"),
        tensor("output", "OUTPUT0"),
    )
}
