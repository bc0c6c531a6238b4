//! v1 over gRPC with the client of 2020: unary calls, streams, and requests that only a plain stub
//! can send.

use trtserver_proto_wire::{Fields, put_number};
use trtserver_tests::grpc::{field, raw};
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::{Server, every_model, probe, python_v1};

#[test]
fn v1_client() {
    let server = every_model().start();
    python_v1(&server, "v1_grpc.py", &[]);
    assert!(server.stop().success());
}

/// A header of mid-2018: no version means the latest, sizes are per batch item.
fn header_of_2018(model: &str, id: u64) -> Vec<u8> {
    let number = |field: u32, value: u64| {
        let mut out = Vec::new();
        put_number(&mut out, field, value);
        out
    };
    let input = [field(1, b"INPUT0"), number(2, 8)].concat();
    let output = [field(1, b"OUTPUT0"), number(2, 8)].concat();
    let header = [number(1, 2), field(2, &input), field(3, &output), number(5, id)].concat();
    field(1, &[field(1, model.as_bytes()), field(3, &header)].concat())
}

/// The messages of a response body, each without its prefix.
fn messages(mut body: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some((prefix, rest)) = body.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        all.push(&rest[..length]);
        body = &rest[length..];
    }
    all
}

#[test]
fn infer_stream_of_2018() {
    let config = probe("echo", &[]).replace("[ -1 ]", "[ 2 ]");
    let server = Server::new().model("echo", config).start();
    let data = [raw([1.0, 2.0]), raw([3.0, 4.0])].concat();
    let mut client = Client::open(server.grpc());
    let call = client.call(&call_headers("/nvidia.inferenceserver.GRPCService/InferStream"));
    let input = |bytes: &[u8]| message(&field(2, bytes));
    for sent in [
        // In one piece, in several, to an unknown model, too much, and left incomplete by the end
        // of the stream.
        message(&header_of_2018("echo", 1)),
        input(&data),
        message(&header_of_2018("echo", 2)),
        input(&data[..3]),
        input(&data[3..]),
        message(&header_of_2018("absent", 3)),
        input(&data),
        message(&header_of_2018("echo", 4)),
        input(&[0; 17]),
        message(&header_of_2018("echo", 5)),
        input(&data[..15]),
    ] {
        client.send(call, &sent, false);
    }
    client.send(call, &[], true);
    let ended = client.end(call);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let messages = messages(&ended.body);
    let refusals = [
        "Inference request for unknown model 'absent'",
        "expected tensor data for 1 inputs but got 2 sets of data for model 'echo'",
        "expected tensor data for 1 inputs but got 0 sets of data for model 'echo'",
    ];
    assert_eq!(messages.len(), 2 * 2 + refusals.len(), "{messages:?}");
    // `batch_size` 2 and an output of 8 bytes an item, at their numbers of that time.
    let output = b"\x18\x02\x22\x0d\x0a\x07OUTPUT0\x12\x02\x08\x08\x28";
    for (id, pair) in (1..=2).zip(messages.chunks(2)) {
        let header = Fields::new(pair[0]).bytes(1).next().unwrap_or_default();
        let header = Fields::new(header).bytes(2).next().unwrap_or_default();
        let expected = [&output[..], &[id]].concat();
        assert!(header.ends_with(&expected), "{header:?}");
        assert_eq!(Fields::new(pair[1]).bytes(2).next(), Some(&data[..]));
    }
    for (id, (text, message)) in (3..).zip(refusals.iter().zip(&messages[4..])) {
        let header = Fields::new(message).bytes(1).next().unwrap_or_default();
        let status = Fields::new(header).bytes(1).next().unwrap_or_default();
        assert_eq!(Fields::new(status).text(2), *text);
        let header = Fields::new(header).bytes(2).next().unwrap_or_default();
        assert_eq!(Fields::new(header).varint(5), id, "{text}");
    }
    assert!(server.stop().success());
}
