//! Header texts in one line. Those that every answer carries are written straight into a string; whatever is
//! out of the ordinary goes through the general printer, and both give the same text.

use std::fmt::Write;
use trtserver_proto::text;
use trtserver_proto::v1::{InferResponseHeader, RequestStatus, RequestStatusCode};

/// NV-Status.
pub fn status(status: &RequestStatus) -> String {
    let ordinary = status.code == RequestStatusCode::Success as i32 && status.msg.is_empty();
    if !ordinary || !plain(&status.server_id) {
        return text::print_line(status);
    }
    let mut out = String::with_capacity(64 + status.server_id.len());
    out.push_str("code: SUCCESS");
    if !status.server_id.is_empty() {
        let _ = write!(out, " server_id: \"{}\"", status.server_id);
    }
    if status.request_id != 0 {
        let _ = write!(out, " request_id: {}", status.request_id);
    }
    out
}

/// NV-InferResponse.
pub fn response(header: &InferResponseHeader) -> String {
    let ordinary = !header.model_name.is_empty()
        && plain(&header.model_name)
        && header.output.iter().all(|o| {
            o.batch_classes.is_empty()
                && o.data_type == 0
                && !o.name.is_empty()
                && plain(&o.name)
                && o.raw.as_ref().is_none_or(|raw| raw.byte_size == 0)
        });
    if !ordinary {
        return text::print_line(header);
    }
    let mut out = String::with_capacity(96 + 96 * header.output.len());
    let _ = write!(out, "model_name: \"{}\"", header.model_name);
    number(&mut out, "model_version", header.model_version);
    number(&mut out, "batch_size", header.batch_size.into());
    for output in &header.output {
        let _ = write!(out, " output {{ name: \"{}\"", output.name);
        if let Some(raw) = &output.raw {
            out.push_str(" raw {");
            for d in &raw.dims {
                let _ = write!(out, " dims: {d}");
            }
            if raw.batch_byte_size != 0 {
                let _ = write!(out, " batch_byte_size: {}", raw.batch_byte_size);
            }
            out.push_str(" }");
        }
        out.push_str(" }");
    }
    if header.id != 0 {
        let _ = write!(out, " id: {}", header.id);
    }
    out
}

fn number(out: &mut String, name: &str, value: i64) {
    if value != 0 {
        let _ = write!(out, " {name}: {value}");
    }
}

/// True when a string stands in text as it is.
fn plain(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\'' | b'\\'))
}

#[cfg(test)]
mod tests {
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
    fn the_example_of_the_contract() {
        let header = InferResponseHeader {
            model_name: "simple".into(),
            model_version: 1,
            batch_size: 1,
            output: vec![
                output("OUTPUT0", raw(&[16], 64, 0)),
                output("OUTPUT1", raw(&[16], 64, 0)),
            ],
            id: 0,
        };
        assert_eq!(
            response(&header),
            "model_name: \"simple\" model_version: 1 batch_size: 1 output { name: \"OUTPUT0\" raw { dims: 16 \
             batch_byte_size: 64 } } output { name: \"OUTPUT1\" raw { dims: 16 batch_byte_size: 64 } }"
        );
    }

    #[test]
    fn same_as_the_general_printer() {
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
            for (model_name, version, batch, id) in
                [("m", 1, 1, 0), ("", 0, 0, 0), ("\\", -1, 9, 7)]
            {
                let header = InferResponseHeader {
                    model_name: model_name.into(),
                    model_version: version,
                    batch_size: batch,
                    output: output.clone(),
                    id,
                };
                let line = response(&header);
                assert_eq!(line, text::print_line(&header));
                assert!(line.is_ascii());
            }
        }
        for (code, msg, server_id, request_id) in [
            (1, "", "inference:0", 7),
            (1, "", "", 0),
            (1, "", "it's", 1),
            (5, "bad\r\nthing", "x", 0),
            (6, "", "x", 3),
        ] {
            let s =
                RequestStatus { code, msg: msg.into(), server_id: server_id.into(), request_id };
            assert_eq!(status(&s), text::print_line(&s));
        }
    }
}
