// SPDX-License-Identifier: Apache-2.0
//! The backend on the test host, without a server: `cargo test`.

use super::Streaming;
use trtserver_plugin_api::abi::types::{code, dtype};
use trtserver_plugin_testkit::{
    Backend, Instance, InstanceSpec, Layout, ModelSpec, Request, Session, table, values,
};

fn open(parameters: &[(&str, &str)]) -> Instance {
    let spec = ModelSpec::new("words")
        .input("TEXT", dtype::STRING, &[1])
        .output("WORD", dtype::STRING, &[1])
        .output("POSITION", dtype::INT32, &[1]);
    let spec = parameters.iter().fold(spec, |spec, (key, value)| spec.parameter(key, value));
    let backend = Backend::open(table::<Streaming>(), "rust_streaming", "", &[]).unwrap();
    backend.open_model(&spec).unwrap().open_instance(&InstanceSpec::default()).unwrap()
}

fn request(text: &str) -> Request {
    let data = [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    Request::new(1)
        .input("TEXT", dtype::STRING, &[1], &data)
        .request_output("WORD")
        .request_output("POSITION")
}

#[test]
fn each_word_is_a_response() {
    // Fails the test at its end if the backend violated the interface.
    let _session = Session::start();
    let outcomes = open(&[]).execute(&[request("so it goes"), request("")]);
    let position = |at: usize| {
        let output = outcomes[0].responses[at].output("POSITION").unwrap();
        values::<i32>(&output.data)
    };
    assert_eq!(outcomes[0].responses.len(), 3);
    assert_eq!([position(0), position(1), position(2)], [[0], [1], [2]]);
    assert_eq!((outcomes[1].responses.len(), &outcomes[1].result), (0, &Ok(())));
}

#[test]
fn cancellation_ends_the_text() {
    let _session = Session::start();
    let instance = open(&[("delay_ms", "600000")]);
    let outcomes =
        instance.execute_with(&[request("one two")], Layout::Ordinary, |running| running.cancel());
    assert_eq!(outcomes[0].result.as_ref().unwrap_err().code, code::CANCELLED);
}

#[test]
fn too_many_words_fail_their_request_only() {
    let _session = Session::start();
    let outcomes = open(&[("max_words", "1")]).execute(&[request("one two"), request("one")]);
    assert_eq!(
        outcomes[0].result.as_ref().unwrap_err().text,
        "the text has 2 words, this model takes 1"
    );
    assert_eq!((outcomes[1].responses.len(), &outcomes[1].result), (1, &Ok(())));
}
