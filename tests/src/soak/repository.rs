//! The server of the soak: eight models that use every batcher.

use crate::install::root;
use crate::scheduled::{accumulator, batcher, correlation, flag, instances, sequences};
use crate::{Server, probe};
use std::fs;

/// Slots of cancelled sequences are freed after this time.
const IDLE: &str = "2000000";

pub fn server() -> Server {
    let ranked = "dynamic_batching { priority_levels: 4 default_priority_level: 2 \
                  preferred_batch_size: [ 4, 16 ] max_queue_delay_microseconds: 300 }\n";
    let controls = [flag("START", "int32"), flag("END", "int32"), flag("READY", "int32")];
    let direct = sequences(IDLE, "direct { }", &controls);
    let controls = [flag("START", "bool"), correlation("UINT64")];
    let strategy = "oldest { max_candidate_sequences: 64 max_queue_delay_microseconds: 300 }";
    let oldest = sequences(IDLE, strategy, &controls);
    Server::new()
        .model("echo", probe("echo", &[]))
        .copy_model("tests/models/addsub_int32")
        .copy_model("tests/models/addsub_fp32_dynamic")
        .copy_model("tests/models/sum_fp32")
        .model("ranked", batcher("ranked", 16, &(ranked.to_owned() + &instances(2))))
        .model("direct", accumulator("direct", 32, "slot", &(direct + &instances(2))))
        .model("oldest", accumulator("oldest", 32, "corrid", &(oldest + &instances(2))))
        .copy_model("tests/models/sequences/state_direct")
        .file("state_direct/config.pbtxt", many_slots())
}

/// The committed configuration has few slots and a long idle limit.
fn many_slots() -> String {
    let path = root().join("tests/models/sequences/state_direct/config.pbtxt");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let changed = text
        .replace("max_batch_size: 4\n", "max_batch_size: 32\n")
        .replace("microseconds: 60000000", &format!("microseconds: {IDLE}"));
    assert!(changed.contains("max_batch_size: 32") && changed.contains(IDLE), "{text}");
    changed
}
