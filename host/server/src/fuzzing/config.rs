//! Protobuf's text format: `config.pbtxt`, and the header of a v1 request.

use trtserver_model_config::{
    InstanceSupport, MachineFacts, MachineGpu, check_config, normalise_config,
};
use trtserver_proto::schema::Described;
use trtserver_proto::v1::InferRequestHeader;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::{json, text};

/// A `config.pbtxt`: parsing and printing lose nothing, and the checks accept it or give a message.
pub fn model_config(bytes: &[u8]) {
    let Some(mut config) = round_trip::<ModelConfig>(bytes) else { return };
    let printed = json::model_config(&config);
    let parsed = serde_json::from_str::<serde_json::Value>(&printed);
    assert!(parsed.is_ok(), "{parsed:?} in {printed}");
    let gpu = MachineGpu { id: 0, name: "GPU".to_owned(), compute: (7, 5) };
    let machine = MachineFacts::new(vec![gpu], 0.0);
    let support = InstanceSupport::every_kind();
    normalise_config(&mut config, &machine, &support);
    if let Err(errors) = check_config(&config, &machine, &support, 1024) {
        assert!(errors.iter().all(|error| !error.message.is_empty()));
    }
}

/// The `NV-InferRequest` header of v1.
pub fn v1_header(bytes: &[u8]) {
    round_trip::<InferRequestHeader>(bytes);
}

/// A parsed message is the same after printing, on one line or several, and parsing. Errors have a
/// position and a message.
fn round_trip<M: Described>(bytes: &[u8]) -> Option<M> {
    let text = std::str::from_utf8(bytes).ok()?;
    let message: M = match text::parse(text) {
        Ok(message) => message,
        Err(error) => {
            let lines = text.split('\n').count();
            assert!((1..=lines).contains(&error.line), "{error} in {lines} lines");
            assert!(error.column > 0 && !error.message.is_empty(), "{error}");
            return None;
        }
    };
    for printed in [text::print(&message), text::print_line(&message)] {
        let reparsed: M = text::parse(&printed).unwrap_or_else(|e| panic!("{e} in {printed}"));
        // Encoded, because NaN is not equal to itself.
        assert_eq!(reparsed.encode_to_vec(), message.encode_to_vec(), "{printed}");
    }
    Some(message)
}
