//! Unary calls, tonic endpoints and streams of v1 gRPC, against models served by threads.

use super::*;
use crate::testing;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use prost::Message;
use tokio_stream::StreamExt;
use tonic::Request;
use trtserver_base::clock::now_ns;
use trtserver_base::state::ServerPhase;
use trtserver_proto::codec::UndecodedRegionControl;
use trtserver_proto::v1::grpc_service_server::GrpcService;
use trtserver_proto::v1::infer_request_header::{Input, Output};
use trtserver_proto::v1::repository_request::RequestType;
use trtserver_proto::v1::shared_memory_control_response::SharedMemoryControl;
use trtserver_proto::v1::{
    HealthRequest, InferRequest, InferRequestHeader, InferResponse, InferResponseHeader,
    ModelControlRequest, ProfileRequest, RepositoryRequest, RequestStatus, StatusRequest,
};
use trtserver_proto_wire::{put_bytes, put_number};
use trtserver_request::shared_memory::testing::Object;
use trtserver_wire::unread::ConnectionUnread;

fn request(id: u64) -> InferRequest {
    let input = |name: &str| Input { name: name.into(), ..Input::default() };
    let output = |name: &str| Output { name: name.into(), ..Output::default() };
    InferRequest {
        model_name: "simple".into(),
        model_version: -1,
        meta_data: Some(InferRequestHeader {
            batch_size: 1,
            input: vec![input("INPUT0"), input("INPUT1")],
            output: vec![output("OUTPUT1"), output("OUTPUT0")],
            id,
            ..InferRequestHeader::default()
        }),
        raw_input: [5i32, 3].map(|v| Bytes::from(v.to_le_bytes().repeat(16))).to_vec(),
    }
}

fn status(code: i32, msg: &str, request_id: u64) -> Option<RequestStatus> {
    Some(RequestStatus { code, msg: msg.into(), server_id: "inference:0".into(), request_id })
}

async fn call(ctx: &Arc<FrontendContext>, request: &InferRequest) -> InferResponse {
    InferResponse::decode(&*call_raw(ctx, request.encode_to_vec()).await).unwrap()
}

async fn call_raw(ctx: &Arc<FrontendContext>, message: Vec<u8>) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend_from_slice(&message);
    let request = http::Request::post("/nvidia.inferenceserver.GRPCService/Infer")
        .header("content-type", "application/grpc")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let collected = serve_infer(ctx, request, now_ns()).await.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
    collected.to_bytes()[5..].to_vec()
}

#[tokio::test]
async fn v0_8_request_gets_legacy_response() {
    let ctx = testing::context("");
    // No version, sizes per item as varints at 2.
    let input = |name: &[u8]| [b"\x12\x0a\x0a\x06", name, b"\x10\x40"].concat();
    let header =
        [b"\x08\x01", &*input(b"INPUT0"), &*input(b"INPUT1"), b"\x1a\x09\x0a\x07OUTPUT0"].concat();
    let mut message = [b"\x0a\x06simple\x12\x011\x1a", &[header.len() as u8][..], &header].concat();
    for v in [5i32, 3] {
        message.extend_from_slice(b"\x22\x40");
        message.extend(v.to_le_bytes().repeat(16));
    }
    let got = call_raw(&ctx, message).await;
    let old = crate::legacy::LegacyResponse::decode(&*got).unwrap();
    assert_eq!(old.request_status, status(1, "", 1));
    let shown = format!("{:?}", old.meta_data.unwrap());
    assert!(shown.contains("raw: Some(LegacyRawOutput { byte_size: 64 })"), "{shown}");
    assert_eq!(got[got.len() - 64..], 8i32.to_le_bytes().repeat(16));
}

#[tokio::test]
async fn unary_inference_and_its_errors() {
    let ctx = testing::context("");
    let got = call(&ctx, &request(9)).await;
    assert_eq!(got.request_status, status(1, "", 1));
    assert_eq!(got.raw_output, [2i32, 8].map(|v| v.to_le_bytes().repeat(16)).to_vec());
    let header = got.meta_data.unwrap();
    assert_eq!((header.id, header.model_version, header.output.len()), (9, 1, 2));
    let zero = call(&ctx, &InferRequest { model_version: 0, ..request(0) }).await;
    assert_eq!(zero.meta_data.unwrap().model_version, 0);

    type Change = fn(&mut InferRequest);
    let failing: [(&str, Change, i32, &str); 4] = [
        ("version", |r| r.model_version = 5, 6, "Inference request for unknown model 'simple'"),
        (
            "no header",
            |r| r.meta_data = None,
            5,
            "inference request batch-size must be >= 1 for 'simple'",
        ),
        (
            "entries",
            |r| r.raw_input.truncate(1),
            5,
            "expected tensor data for 2 inputs but got 1 sets of data for model 'simple'",
        ),
        (
            "size",
            |r| r.raw_input[1].truncate(3),
            5,
            "unexpected size 3 for input 'INPUT1', expecting 64 for model 'simple'",
        ),
    ];
    for (what, change, code, msg) in failing {
        let mut request = request(9);
        change(&mut request);
        let id = request.meta_data.as_ref().map_or(0, |h| h.id);
        let got = call(&ctx, &request).await;
        assert_eq!(got.request_status, status(code, msg, 0), "{what}");
        assert_eq!(got.meta_data, Some(InferResponseHeader { id, ..Default::default() }));
        assert!(got.raw_output.is_empty());
    }
}

#[tokio::test]
async fn control_endpoints() {
    let ctx = testing::context("");
    let s = service::Service::new(Arc::clone(&ctx));
    let health = async |mode: &str| {
        let got = s.health(Request::new(HealthRequest { mode: mode.into() })).await.unwrap();
        let got = got.into_inner();
        (got.health, got.request_status)
    };
    assert_eq!(health("live").await, (true, status(1, "", 1)));
    assert_eq!(health("x").await, (false, status(2, "unknown health mode 'x'", 2)));
    let report = async |name: &str| {
        let request = Request::new(StatusRequest { model_name: name.into() });
        let got = s.status(request).await.unwrap().into_inner();
        (got.request_status, got.server_status.unwrap())
    };
    let (ended, all) = report("").await;
    assert_eq!((ended, all.model_status.len()), (status(1, "", 3), 3));
    assert_eq!(all.health_stats.unwrap().success.unwrap().count, 2);
    let (ended, none) = report("x").await;
    assert_eq!(ended, status(5, "no status available for unknown model 'x'", 4));
    assert_eq!((none.model_status.len(), &*none.id, none.ready_state), (0, "inference:0", 2));
    let got = s.profile(Request::new(ProfileRequest::default())).await.unwrap().into_inner();
    assert_eq!(got.request_status, status(7, "Profile API not enabled", 5));
    let request = Request::new(ModelControlRequest { model_name: "m".into(), r#type: 1 });
    let got = s.model_control(request).await.unwrap().into_inner();
    assert_eq!(got.request_status.unwrap().code, 6);

    let object = Object::new(64);
    let key = object.key.as_bytes();
    // v1.6's register, v1.7's unregister, v1.7's status, v1.7's unregister_all.
    let mut region = Vec::new();
    put_bytes(&mut region, 1, b"n");
    let (mut register, mut unregister) = (Vec::new(), Vec::new());
    put_bytes(&mut unregister, 2, &region);
    put_bytes(&mut region, 2, key);
    put_number(&mut region, 4, 64);
    put_bytes(&mut register, 2, &region);
    for (message, code, regions) in [
        (&b""[..], 2, None),
        (&register, 1, None),
        (&register, 8, None),
        (b"\x22\0", 1, Some(1)),
        (&unregister, 1, None),
        (b"\x22\0", 1, Some(0)),
        (&register, 1, None),
        (b"\x1a\0", 1, None),
        (b"\x22\0", 1, Some(0)),
    ] {
        let request = UndecodedRegionControl::decode(message).unwrap();
        let got = s.shared_memory_control(Request::new(request)).await.unwrap().into_inner();
        assert_eq!(got.request_status.unwrap().code, code, "{message:?}");
        let listed = got.shared_memory_control.map(|SharedMemoryControl::SharedMemoryStatus(s)| {
            assert_eq!(s.shared_memory_region, s.shared_memory_region_as_sent);
            s.shared_memory_region.len()
        });
        assert_eq!(listed, regions, "{message:?}");
    }
    let malformed = UndecodedRegionControl::decode(&b"\x12"[..]).unwrap();
    let error = s.shared_memory_control(Request::new(malformed)).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::Internal);
    for (request_type, code) in [(None, 2), (Some(RequestType::Index(false)), 1)] {
        let request = Request::new(RepositoryRequest { request_type });
        let got = s.repository(request).await.unwrap().into_inner();
        assert_eq!(got.request_status.unwrap().code, code);
        assert_eq!(got.response_type.is_some(), code == 1);
    }
    let e = &ctx.endpoints;
    let counts = [&e.model_control, &e.shm_control, &e.repository].map(|e| e.get().count);
    assert_eq!(counts, [1, 9, 2]);
    let all = report("").await.1;
    assert_eq!(all.model_control_stats.unwrap().success.unwrap().count, 1);
    assert_eq!(all.shm_control_stats.unwrap().success.unwrap().count, 9);
    assert_eq!(all.repository_stats.unwrap().success.unwrap().count, 2);

    ctx.state.set_phase(ServerPhase::Exiting);
    assert_eq!(health("live").await, (false, status(6, "Server exiting", 0)));
    let (ended, bare) = report("").await;
    assert_eq!((ended, bare.ready_state), (status(6, "Server exiting", 0), 3));
}

fn stream_of(
    ctx: &Arc<FrontendContext>,
    requests: Vec<Result<InferRequest, tonic::Status>>,
) -> stream::ResponseStream {
    let unread = ConnectionUnread::new(ctx.settings.unread);
    stream::answer_in_order(ctx, tokio_stream::iter(requests), (0, None), unread)
}

#[tokio::test]
async fn stream_responds_in_order_and_survives_failures() {
    let ctx = testing::context("");
    // The first request is slow, the second is for another, faster model.
    let mut other = request(2);
    other.model_name = "m".into();
    let mut requests = vec![Ok(request(20_000)), Ok(other)];
    requests.extend((3..600).map(|id| Ok(request(id))));
    let responses: Vec<_> = stream_of(&ctx, requests).collect().await;
    let ids: Vec<u64> =
        responses.iter().map(|a| a.as_ref().unwrap().meta_data.as_ref().unwrap().id).collect();
    assert_eq!(ids, [20_000].into_iter().chain(2..600).collect::<Vec<_>>());
    let failed: Vec<_> = responses
        .iter()
        .filter(|a| a.as_ref().unwrap().request_status.as_ref().unwrap().code != 1)
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(ctx.state.in_flight(), 0);
}

#[tokio::test]
async fn reset_stream_completes_received_requests() {
    let ctx = testing::context("");
    let requests = vec![Ok(request(1)), Err(tonic::Status::internal("bad")), Ok(request(3))];
    let responses: Vec<_> = stream_of(&ctx, requests).collect().await;
    assert_eq!(responses.len(), 2);
    assert_eq!(responses[1].as_ref().unwrap_err().message(), "bad");
}

#[tokio::test]
async fn dropped_stream_cancels_and_stops_reading() {
    let ctx = testing::context("");
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let read = Arc::clone(&count);
    let endless = std::iter::repeat_with(move || {
        read.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // Each takes five seconds, so at most one is executed even on a slow machine.
        Ok(request(5_000_000))
    });
    let unread = ConnectionUnread::new(ctx.settings.unread);
    let responses = stream::answer_in_order(&ctx, tokio_stream::iter(endless), (0, None), unread);
    while ctx.state.in_flight() < 999 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let read = count.load(std::sync::atomic::Ordering::Relaxed);
    assert!((999..=1001).contains(&read), "{read} requests were read");
    drop(responses);
    let served = ctx.models.find("simple", None).unwrap();
    for _ in 0..1000 {
        if served.stats.snapshot().failures[1] >= 998 {
            assert_eq!(ctx.state.in_flight(), 0);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("not cancelled: {:?}", served.stats.snapshot().failures);
}
