//! Unit tests of `header_text.rs`.

use super::*;
use trtserver_proto::v1::infer_response_header::Output;
use trtserver_proto::v1::infer_response_header::output::{Class, Classes, Raw};

fn raw(dims: &[i64], batch_byte_size: u64, byte_size: u64) -> Option<Raw> {
    Some(Raw { dims: dims.to_vec(), batch_byte_size, byte_size })
}

fn output(name: &str, raw: Option<Raw>) -> Output {
    Output { name: name.into(), raw, ..Output::default() }
}

#[test]
fn contract_example() {
    let header = InferResponseHeader {
        model_name: "simple".into(),
        model_version: 1,
        batch_size: 1,
        output: vec![output("OUTPUT0", raw(&[16], 64, 0)), output("OUTPUT1", raw(&[16], 64, 0))],
        id: 0,
    };
    assert_eq!(
        format_response_header(&header).text(),
        "model_name: \"simple\" model_version: 1 batch_size: 1 output { name: \"OUTPUT0\" raw { dims: 16 \
         batch_byte_size: 64 } } output { name: \"OUTPUT1\" raw { dims: 16 batch_byte_size: 64 } }"
    );
}

#[test]
fn fast_path_writes_as_the_text_printer() {
    let classes = vec![Classes { cls: vec![Class { idx: 1, value: 0.5, label: "b".into() }] }];
    let outputs = [
        vec![],
        vec![output("O", None)],
        vec![output("O", raw(&[], 0, 0))],
        vec![output("O", raw(&[0, -1, 5], 1 << 40, 0)), output("two words", raw(&[], 4, 0))],
        vec![output("O", raw(&[], 0, 16))],
        vec![output("quo\"te\u{e9}\n", raw(&[1], 4, 0))],
        vec![Output { batch_classes: classes, ..output("C", None) }],
        vec![output("", raw(&[1], 4, 0))],
    ];
    for output in outputs {
        for (model_name, version, batch, id) in [("m", 1, 1, 0), ("", 0, 0, 0), ("\\", -1, 9, 7)] {
            let header = InferResponseHeader {
                model_name: model_name.into(),
                model_version: version,
                batch_size: batch,
                output: output.clone(),
                id,
            };
            let line = format_response_header(&header);
            assert_eq!(line.text(), text::print_line(&header));
            assert!(line.text().is_ascii());
            assert_eq!(line.into_value().unwrap(), text::print_line(&header));
        }
    }
    for (code, msg, server_id, request_id) in [
        (1, "", "inference:0", 7),
        (1, "", "", 0),
        (1, "", "it's", 1),
        (5, "bad\r\nthing", "x", 0),
        (6, "", "x", 3),
    ] {
        let s = RequestStatus { code, msg: msg.into(), server_id: server_id.into(), request_id };
        assert_eq!(format_status(&s).text(), text::print_line(&s));
    }
}
