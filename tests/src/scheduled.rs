//! Model configurations for scheduler tests: outputs report sums and the batch that a request was
//! executed in.

use crate::repository::parameters;

/// INPUT0 and INPUT1, FP32 of any length, are echoed as OUTPUT0 and OUTPUT1; each row of BATCH has
/// the number of rows and requests of the batch. `more` is appended to the configuration.
pub fn batcher(name: &str, max_batch_size: u32, more: &str) -> String {
    let tensor = |name: &str, kind: &str, dims: &str| {
        format!("{{ name: \"{name}\" data_type: TYPE_{kind} dims: [ {dims} ] }}")
    };
    let [in0, in1, out0, out1] =
        ["INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1"].map(|name| tensor(name, "FP32", "-1"));
    let batch = tensor("BATCH", "INT32", "2");
    let instances = if more.contains("instance_group") { "" } else { ONE_INSTANCE };
    format!(
        "name: \"{name}\"\nbackend: \"probe\"\nmax_batch_size: {max_batch_size}\n\
         input [ {in0}, {in1} ]\noutput [ {out0}, {out1}, {batch} ]\n{instances}{more}\n{}",
        parameters(&[("report_batch", "true")])
    )
}

/// One INT32 in INPUT0; OUTPUT0 is the running sum of the batch position (`slot`) or of the
/// sequence (`corrid`). Each row of BATCH has the number of rows and requests of the batch.
pub fn accumulator(name: &str, max_batch_size: u32, accumulate: &str, more: &str) -> String {
    let instances = if more.contains("instance_group") { "" } else { ONE_INSTANCE };
    format!(
        "name: \"{name}\"\nbackend: \"probe\"\nmax_batch_size: {max_batch_size}\n\
         input [ {{ name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] }} ]\n\
         output [ {{ name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 1 ] }}, \
         {{ name: \"BATCH\" data_type: TYPE_INT32 dims: [ 2 ] }} ]\n{instances}{more}\n{}",
        parameters(&[("accumulate", accumulate), ("report_batch", "true")])
    )
}

const ONE_INSTANCE: &str = "instance_group [ { kind: KIND_CPU count: 1 } ]\n";

/// `sequence_batching` with this idle limit, strategy and controls.
pub fn sequences(idle: &str, strategy: &str, controls: &[String]) -> String {
    let controls = controls.concat();
    format!(
        "sequence_batching {{\n  max_sequence_idle_microseconds: {idle}\n  {strategy}\n{controls}}}\n"
    )
}

/// A control tensor START, END or READY of this kind: `int32`, `fp32` or `bool`.
pub fn flag(name: &str, kind: &str) -> String {
    let values = if kind == "bool" { "false, true" } else { "0, 1" };
    control(name, name, &format!("{kind}_false_true: [ {values} ]"))
}

/// The control tensor CORRID of this type.
pub fn correlation(data_type: &str) -> String {
    control("CORRID", "CORRID", &format!("data_type: TYPE_{data_type}"))
}

fn control(name: &str, kind: &str, rest: &str) -> String {
    format!(
        "  control_input [ {{ name: \"{name}\" control [ {{ kind: CONTROL_SEQUENCE_{kind} {rest} }} ] }} ]\n"
    )
}

/// This many CPU instances.
pub fn instances(count: u32) -> String {
    format!("instance_group [ {{ kind: KIND_CPU count: {count} }} ]\n")
}

/// An idle limit that no test reaches.
pub const NEVER: &str = "600000000";
