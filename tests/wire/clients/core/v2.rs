//! v2: metadata, inference, streams, shared memory, model control, deadlines; blocking, in the
//! background and async.

use super::{fp32, int32, ok, settings};
use std::sync::mpsc;
use std::time::Duration;
use trtserver_client::shared_memory::Region;
use trtserver_client::v2::{
    InferRequest, InferRequestedOutput, Input, LoadOptions, LogSettings, LogValue, Parameter,
    Sequence, SequenceId, SharedMemory, TraceSettings,
};
use trtserver_client::{Borrow, Bytes, Compression, Kind, Protocol, blocking, v2};

fn v2_clients() -> [blocking::v2::BlockingClient; 2] {
    [Protocol::Http, Protocol::Grpc]
        .map(|protocol| ok(blocking::v2::BlockingClient::new(&settings(protocol))))
}

fn addsub() -> InferRequest {
    let counted: Vec<i32> = (0..16).collect();
    InferRequest::new("addsub_int32")
        .input(Input::new("INPUT0", "INT32", [1, 16], int32(&counted)))
        .input(Input::new("INPUT1", "INT32", [1, 16], int32(&[1; 16])))
}

fn sums() -> (Bytes, Bytes) {
    let of = |add| int32(&(0..16).map(|v| v + add).collect::<Vec<_>>());
    (of(1), of(-1))
}

fn echo(values: &[f32]) -> InferRequest {
    let shape = [1, values.len() as i64];
    InferRequest::new("echo").input(Input::new("INPUT0", "FP32", shape, fp32(values)))
}

#[test]
fn v2_health_metadata_and_configuration() {
    for client in v2_clients() {
        assert!(client.is_live().unwrap() && client.is_ready().unwrap());
        assert!(client.is_model_ready("echo", "1").unwrap());
        assert!(!client.is_model_ready("absent", "").unwrap());
        assert!(!client.server_metadata().unwrap().extensions.is_empty());
        let metadata = client.model_metadata("addsub_int32", "").unwrap();
        assert_eq!((metadata.inputs.len(), &metadata.inputs[0].shape[..]), (2, &[-1, 16][..]));
        let config = client.model_config("addsub_int32", "").unwrap();
        assert_eq!((config.max_batch_size, &config.input[0].dims[..]), (8, &[16][..]));
        let error = client.model_metadata("absent", "").unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound, "{error}");
        assert_eq!(error.message(), "Request for unknown model: 'absent' is not found");
        assert!(error.asked().contains(client.url()), "{error}");
    }
}

#[test]
fn v2_infer_returns_all_or_requested_outputs() {
    let (sum, difference) = sums();
    for client in v2_clients() {
        let response = client.infer(&addsub().id("seven")).unwrap();
        assert_eq!((response.id.as_str(), response.version.as_str()), ("seven", "1"));
        assert_eq!(response.output("OUTPUT0").unwrap().data, sum);
        assert_eq!(response.output("OUTPUT1").unwrap().data, difference);
        let requested = addsub().output(InferRequestedOutput::new("OUTPUT1"));
        let response = client.infer(&requested).unwrap();
        assert_eq!(response.outputs.len(), 1);
        assert_eq!(response.outputs[0].data, difference);
        let error = client.infer(&addsub().output(InferRequestedOutput::new("NONE"))).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument, "{error}");
        assert!(error.is_from_server() && error.message().contains("'NONE'"), "{error}");
    }
}

#[test]
fn v2_strings_classes_and_json_tensors() {
    for client in v2_clients() {
        let strings = Input::strings("INPUT0", [1, 3], ["", "two", "drei"]);
        let response = client.infer(&InferRequest::new("identity_string").input(strings)).unwrap();
        assert_eq!(response.outputs[0].strings().unwrap(), [&b""[..], b"two", b"drei"]);
        let scores = Input::new("INPUT0", "FP32", [1, 5], fp32(&[1.0, 5.0, 3.0, 0.0, 2.0]));
        let request = InferRequest::new("classes").input(scores);
        let response = client.infer(&request.output(InferRequestedOutput::classes("OUTPUT0", 2)));
        let classes = response.unwrap().outputs[0].classes().unwrap();
        let found: Vec<_> = classes.iter().map(|c| (c.index, c.label.as_str(), c.value)).collect();
        assert_eq!(found, [(1, "green", 5.0), (2, "blue", 3.0)]);
        let mut json = addsub();
        json.inputs.iter_mut().for_each(|input| input.json = true);
        json.json_outputs = true;
        assert_eq!(client.infer(&json).unwrap().output("OUTPUT0").unwrap().data, sums().0);
    }
}

/// 16 MiB in several slices, of memory that is borrowed.
#[test]
fn v2_large_tensors_are_sent_from_borrowed_memory() {
    let values: Vec<u8> = (0..4_u32 << 20).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let half = values.len() / 2;
    for client in v2_clients() {
        let borrow = Borrow::new();
        // SAFETY: `values` outlives the call, which returns after the borrow was released.
        let slices = unsafe {
            vec![
                borrow.bytes(values.as_ptr(), half),
                borrow.bytes(values.as_ptr().add(half), values.len() - half),
            ]
        };
        let mut request = echo(&[]);
        request.inputs[0].shape = vec![1, 4 << 20];
        request.inputs[0].data = v2::Data::Raw(slices);
        let response = client.infer_borrowed(request, &borrow).unwrap();
        assert!(response.outputs[0].data == values);
        assert!(borrow.is_released());
    }
}

#[test]
fn v2_compression() {
    for compression in [Compression::Gzip, Compression::Deflate] {
        for protocol in [Protocol::Http, Protocol::Grpc] {
            let settings = settings(protocol).compression(Some(compression));
            let client = blocking::v2::BlockingClient::new(&settings).unwrap();
            let response = client.infer(&addsub()).unwrap();
            assert_eq!(response.output("OUTPUT0").unwrap().data, sums().0);
        }
    }
}

#[test]
fn v2_wrong_requests_are_refused_before_they_are_sent() {
    for client in v2_clients() {
        let short = Input::new("INPUT0", "INT32", [1, 16], int32(&[1; 15]));
        let error = client.infer(&InferRequest::new("addsub_int32").input(short)).unwrap_err();
        assert_eq!(
            error.message(),
            "input 'INPUT0' for model 'addsub_int32': INT32 of shape [1, 16] has 64 bytes, got 60"
        );
        let mut reserved = addsub();
        reserved.parameters.insert("sequence_id".into(), Parameter::Int(1));
        let error = client.infer(&reserved).unwrap_err();
        assert!(error.message().contains("'sequence_id'"), "{error}");
    }
}

#[test]
fn v2_sequence_over_unary_calls() {
    for (client, id) in v2_clients().iter().zip([11, 12]) {
        for (at, expected) in [(0, 1), (1, 3), (2, 6)] {
            let sequence = Sequence { id: SequenceId::Number(id), start: at == 0, end: at == 2 };
            let input = Input::new("INPUT0", "INT32", [1, 1], int32(&[at + 1]));
            let request = InferRequest::new("sums").input(input).sequence(sequence);
            let response = client.infer(&request).unwrap();
            assert_eq!(response.output("OUTPUT0").unwrap().data, int32(&[expected]));
        }
    }
}

#[test]
fn v2_stream_of_decoupled_responses_and_errors() {
    let [http, grpc] = v2_clients();
    assert_eq!(http.stream().err().unwrap().kind(), Kind::Unsupported);
    let stream = grpc.stream().unwrap();
    let mut request = echo(&[7.0]).id("a");
    request.model = "many".into();
    request.parameters.insert("responses".into(), Parameter::Int(3));
    stream.send(&request).unwrap();
    for last in [false, false, true] {
        let response = stream.next().unwrap().unwrap();
        assert_eq!((response.id.as_str(), response.is_final), ("a", last));
        assert_eq!(response.outputs[0].data, fp32(&[7.0]));
    }
    // An error of one request leaves the stream open.
    let mut unknown = echo(&[1.0]).id("b");
    unknown.model = "absent".into();
    stream.send(&unknown).unwrap();
    let error = stream.next().unwrap_err();
    assert!(error.is_from_server() && error.id() == "b", "{error:?}");
    request.parameters.insert("responses".into(), Parameter::Int(0));
    request.empty_final_response = true;
    stream.send(&request).unwrap();
    let last = stream.next().unwrap().unwrap();
    assert!(last.is_final && last.outputs.is_empty());
    stream.close_requests();
    assert!(stream.next().unwrap().is_none());
}

#[test]
fn v2_system_shared_memory() {
    for (client, name) in v2_clients().iter().zip(["core_http", "core_grpc"]) {
        let region =
            Region::create(&format!("/trtserver_{name}_{}", std::process::id()), 16).unwrap();
        region.write(0, &fp32(&[1.5, 2.5])).unwrap();
        client.register_system_shared_memory(name, region.key(), 0, 16).unwrap();
        let status = client.system_shared_memory_status(name).unwrap();
        assert_eq!(status.regions[name].byte_size, 16);
        let part = |offset| SharedMemory { region: name.into(), offset, byte_size: 8 };
        let request = InferRequest::new("echo")
            .input(Input::shared("INPUT0", "FP32", [1, 2], part(0)))
            .output(InferRequestedOutput::shared("OUTPUT0", part(8)));
        let response = client.infer(&request).unwrap();
        assert!(response.outputs[0].in_shared_memory);
        assert_eq!(region.read(8, 8).unwrap(), fp32(&[1.5, 2.5]));
        client.unregister_system_shared_memory(name).unwrap();
        assert!(client.system_shared_memory_status(name).is_err());
    }
}

#[test]
fn v2_statistics_index_and_control() {
    for client in v2_clients() {
        let statistics = client.statistics("echo", "").unwrap();
        assert_eq!(statistics.model_stats[0].name, "echo");
        assert!(client.repository_index(true).unwrap().models.iter().any(|m| m.name == "echo"));
        let config = r#"{"backend":"probe","max_batch_size":2,"input":[{"name":"INPUT0","data_type":"TYPE_FP32","dims":[-1]}],
            "output":[{"name":"OUTPUT0","data_type":"TYPE_FP32","dims":[-1]}]}"#;
        let options = LoadOptions {
            config: Some(config.into()),
            files: vec![("1/model.txt".into(), Bytes::from_static(b"contents"))],
        };
        client.load("loaded", &options).unwrap();
        assert_eq!(client.model_config("loaded", "").unwrap().max_batch_size, 2);
        client.unload("loaded", false).unwrap();
        let error = client.load("absent", &LoadOptions::default()).unwrap_err();
        assert!(error.message().contains("failed to load 'absent'"), "{error}");
        let traces = client.trace_settings("", &TraceSettings::new()).unwrap();
        assert_eq!(traces["trace_level"], ["OFF"]);
        let changes = LogSettings::from([("log_verbose_level".to_owned(), LogValue::Number(0))]);
        let logs = client.log_settings(&changes).unwrap();
        assert_eq!(logs["log_info"], LogValue::Bool(true));
    }
}

#[test]
fn v2_deadline_cancels_the_request() {
    for client in v2_clients() {
        let mut request = echo(&[1.0]);
        request.model = "endless".into();
        request.deadline = Some(Duration::from_millis(50));
        let error = client.infer(&request).unwrap_err();
        assert_eq!(error.kind(), Kind::DeadlineExceeded, "{error}");
        // The connection is not left in the middle of a response.
        assert!(client.infer(&addsub()).is_ok());
    }
}

#[test]
fn v2_call_in_the_background_completes_or_is_cancelled() {
    for client in v2_clients() {
        let (sender, results) = mpsc::channel();
        let done = sender.clone();
        client.infer_async(addsub(), Borrow::new(), move |r| done.send(r).unwrap()).unwrap();
        let response = results.recv().unwrap().unwrap();
        assert_eq!(response.output("OUTPUT0").unwrap().data, sums().0);
        let mut endless = echo(&[1.0]);
        endless.model = "endless".into();
        let call =
            client.infer_async(endless, Borrow::new(), move |r| sender.send(r).unwrap()).unwrap();
        call.cancel();
        assert_eq!(results.recv().unwrap().unwrap_err().kind(), Kind::Cancelled);
    }
}

#[test]
fn async_client_shares_a_connection_among_calls() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for protocol in [Protocol::Http, Protocol::Grpc] {
            let client = v2::Client::new(&settings(protocol)).unwrap();
            let calls = (0..32).map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.infer(&addsub()).await })
            });
            for call in calls.collect::<Vec<_>>() {
                assert_eq!(call.await.unwrap().unwrap().outputs[0].data, sums().0);
            }
        }
        let blocking = blocking::v2::BlockingClient::new(&settings(Protocol::Http)).unwrap();
        let error = blocking.is_live().unwrap_err();
        assert!(error.message().contains("thread of an async runtime"), "{error}");
    });
}

#[test]
fn threads_share_a_blocking_client() {
    for client in v2_clients() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let response = client.infer(&addsub()).unwrap();
                        assert_eq!(response.output("OUTPUT0").unwrap().data, sums().0);
                    }
                });
            }
        });
    }
}
