//! Unit tests of `message.rs`.

use super::{MessageKind, MessageOutcome, MessageReader, message_outcome};
use prost::Message;
use trtserver_proto::{v1, v2};

fn framed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

#[test]
fn messages_are_split_in_any_pieces() {
    let bytes = [framed(b"one"), framed(b""), framed(b"three")].concat();
    for piece in 1..=bytes.len() {
        let mut reader = MessageReader::default();
        let mut found = Vec::new();
        for mut data in bytes.chunks(piece) {
            while !data.is_empty() {
                if let Some(message) = reader.read(&mut data).unwrap() {
                    found.push(message.to_vec());
                }
            }
        }
        assert_eq!(found, [b"one".to_vec(), vec![], b"three".to_vec()], "{piece}");
        assert!(!reader.is_inside());
    }
    assert!(MessageReader::default().read(&mut [1, 0, 0, 0, 0].as_slice()).is_err());
}

#[test]
fn only_the_start_of_a_message_is_kept() {
    let bytes = framed(&vec![7; 100_000]);
    let mut reader = MessageReader::default();
    assert_eq!(reader.read(&mut bytes.as_slice()).unwrap().map(<[u8]>::len), Some(4096));
}

#[test]
fn v1_status_is_read() {
    let response = |code: v1::RequestStatusCode, msg: &str| {
        let status = v1::RequestStatus {
            code: code.into(),
            msg: msg.into(),
            server_id: "s".into(),
            request_id: 5,
        };
        let request_status = Some(status);
        v1::InferResponse { request_status, ..Default::default() }.encode_to_vec()
    };
    use v1::RequestStatusCode::{NotFound, Success};
    assert_eq!(message_outcome(MessageKind::V1, &response(Success, "")), MessageOutcome::default());
    let failure = message_outcome(MessageKind::V1, &response(NotFound, "none")).failure;
    assert_eq!(failure.as_deref(), Some("[s 5] NOT_FOUND - none"));
    assert!(message_outcome(MessageKind::V1, b"").failure.is_some());
    assert!(message_outcome(MessageKind::V1, b"\xff\xff\xff").failure.is_some());
}

#[test]
fn v2_stream_errors_and_final_flags_are_read() {
    let message = |error: &str, flag: Option<bool>, outputs: usize| {
        use v2::infer_parameter::ParameterChoice::BoolParam;
        let value = |flag| v2::InferParameter { parameter_choice: Some(BoolParam(flag)) };
        let parameters = flag.map(|flag| ("triton_final_response".to_owned(), value(flag)));
        let infer_response = Some(v2::ModelInferResponse {
            model_name: "m".into(),
            parameters: parameters.into_iter().collect(),
            outputs: vec![Default::default(); outputs],
            ..Default::default()
        });
        v2::ModelStreamInferResponse { error_message: error.into(), infer_response }.encode_to_vec()
    };
    let read = |message: Vec<u8>| message_outcome(MessageKind::V2Stream, &message);
    let expected = |failure: Option<&str>, more_follow, empty| MessageOutcome {
        failure: failure.map(str::to_owned),
        more_follow,
        empty,
    };
    assert_eq!(read(message("", None, 1)), expected(None, false, false));
    assert_eq!(read(message("", Some(false), 1)), expected(None, true, false));
    assert_eq!(read(message("", Some(true), 0)), expected(None, false, true));
    assert_eq!(read(message("no", None, 0)), expected(Some("no"), false, true));
}
