//! Unit tests of `infer.rs`.

use super::*;
use crate::response::BuiltResponse;
use crate::testing;
use trtserver_proto::v1::infer_response_header::Output;

#[test]
fn oversized_response_is_refused() {
    let ctx = testing::context("");
    let header =
        InferResponseHeader { id: 4, output: vec![Output::default()], ..Default::default() };
    let done = |bytes| InferResult {
        built: BuiltResponse {
            header: header.clone(),
            raw: [Bytes::from(vec![0; bytes])].into_iter().collect(),
        },
        request_id: 2,
        batch: 1,
        per_item: false,
    };
    let len = succeeded(&ctx, done(100), 1000).encoded_len();
    assert!(!succeeded(&ctx, done(100), len).raw_output.is_empty());
    let refused = succeeded(&ctx, done(100), len - 1);
    let status = refused.request_status.unwrap();
    assert_eq!((status.code, status.request_id), (5, 2));
    assert_eq!(
        status.msg,
        format!("Response has byte size {len} which exceeds gRPC's byte size limit {}.", len - 1)
    );
    let echoed = InferResponseHeader { id: 4, ..Default::default() };
    assert_eq!((refused.meta_data, refused.raw_output.len()), (Some(echoed), 0));
}
