//! Unit tests of `scheduling`.

use super::*;

#[test]
fn initial_state_larger_than_memory_is_refused() {
    let zero = "name: 'z' data_type: TYPE_FP64 zero_data: true";
    for (dims, initial) in [
        ("[ 1152921504606846976 ]", String::new()),
        ("[ 4294967296, 4294967296, 4 ]", String::new()),
        ("[ -1 ]", format!("initial_state {{ {zero} dims: 1152921504606846975 }}")),
    ] {
        let text = format!(
            "name: 'm' max_batch_size: 8 sequence_batching {{ state {{ input_name: 'i' \
             output_name: 'o' data_type: TYPE_FP64 dims: {dims} {initial} }} }}"
        );
        let config = trtserver_proto::text::parse::<ModelConfig>(&text).unwrap();
        let mut signature = ModelSignature::new(&config, |_| None).unwrap();
        let refused = SchedulingPlan::new(
            &config,
            &mut signature,
            &FilePlaces::new(std::path::Path::new("m"), []),
            &mut LoadMemory::new(u64::MAX),
        );
        let message = refused.err().map_or_else(String::new, |e| e.message);
        let begin = "initial state of state 'i' of model 'm': shape [";
        assert!(message.starts_with(begin), "{message}");
        assert!(message.ends_with("of TYPE_FP64 does not fit into memory"), "{message}");
    }
}
