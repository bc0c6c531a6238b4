//! The Rust client library, clients/core: v2 and v1, over HTTP and gRPC.

use std::sync::LazyLock;
use std::sync::mpsc;
use std::time::Duration;
use trtserver_client::blocking;
use trtserver_client::shared_memory::Region;
use trtserver_client::v1::{ContextOptions, OutputFormat, RunOptions};
use trtserver_client::v2::{
    InferRequest, Input, LoadOptions, LogSettings, LogValue, Parameter, RequestedOutput, Sequence,
    SequenceId, SharedMemory, TraceSettings,
};
use trtserver_client::{Borrow, Bytes, Compression, Kind, Protocol, Settings, v1, v2};
use trtserver_tests::{Running, Server, probe};

static SERVER: LazyLock<Running> = LazyLock::new(|| super::server().start_shared());

fn settings(protocol: Protocol) -> Settings {
    let url = match protocol {
        Protocol::Http => SERVER.http(),
        Protocol::Grpc => SERVER.grpc(),
    };
    Settings::new(url).protocol(protocol)
}

#[track_caller]
fn ok<T>(result: trtserver_client::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn v2_clients() -> [blocking::v2::Client; 2] {
    [Protocol::Http, Protocol::Grpc]
        .map(|protocol| ok(blocking::v2::Client::new(&settings(protocol))))
}

fn v1_clients() -> [blocking::v1::Client; 2] {
    [Protocol::Http, Protocol::Grpc]
        .map(|protocol| ok(blocking::v1::Client::new(&settings(protocol))))
}

fn int32(values: &[i32]) -> Bytes {
    values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()
}

fn fp32(values: &[f32]) -> Bytes {
    values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into()
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
        let requested = addsub().output(RequestedOutput::new("OUTPUT1"));
        let response = client.infer(&requested).unwrap();
        assert_eq!(response.outputs.len(), 1);
        assert_eq!(response.outputs[0].data, difference);
        let error = client.infer(&addsub().output(RequestedOutput::new("NONE"))).unwrap_err();
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
        let response = client.infer(&request.output(RequestedOutput::classes("OUTPUT0", 2)));
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
            let client = blocking::v2::Client::new(&settings).unwrap();
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
            .output(RequestedOutput::shared("OUTPUT0", part(8)));
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
        let blocking = blocking::v2::Client::new(&settings(Protocol::Http)).unwrap();
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

#[test]
fn v1_health_status_and_index() {
    for client in v1_clients() {
        assert!(client.is_live().unwrap().value && client.is_ready().unwrap().value);
        let status = client.status(Some("addsub_int32")).unwrap();
        assert!(status.server_id == "inference:0" && status.request_id > 0);
        let config = status.model_status["addsub_int32"].config.as_ref().unwrap();
        assert_eq!(config.max_batch_size, 8);
        assert!(client.status(None).unwrap().model_status.len() > 10);
        let error = client.status(Some("absent")).unwrap_err();
        assert_eq!(error.message(), "no status available for unknown model 'absent'");
        assert!(error.request_id() > 0 && error.server_id() == "inference:0");
        assert!(client.repository_index().unwrap().models.iter().any(|m| m.name == "echo"));
    }
}

#[test]
fn v1_model_control() {
    let flags = ["--model-control-mode=explicit", "--load-model=echo"];
    let server = flags.into_iter().fold(Server::new(), Server::flag);
    let server = server.model("echo", probe("echo", &[])).start();
    for (url, protocol) in [(server.http(), Protocol::Http), (server.grpc(), Protocol::Grpc)] {
        let settings = Settings::new(url).protocol(protocol);
        let client = blocking::v1::Client::new(&settings).unwrap();
        client.unload("echo").unwrap();
        let error = blocking::v1::Context::new(&settings, &ContextOptions::new("absent")).err();
        assert!(error.unwrap().message().contains("'absent'"));
        client.load("echo").unwrap();
        let error = client.load("absent").unwrap_err();
        assert!(error.is_from_server() && error.message().contains("'absent'"), "{error:?}");
    }
}

fn context(protocol: Protocol, model: &str, streaming: bool) -> blocking::v1::Context {
    let options = ContextOptions { streaming, ..ContextOptions::new(model) };
    ok(blocking::v1::Context::new(&settings(protocol), &options))
}

fn every_context(model: &str) -> [blocking::v1::Context; 3] {
    [
        context(Protocol::Http, model, false),
        context(Protocol::Grpc, model, false),
        context(Protocol::Grpc, model, true),
    ]
}

#[test]
fn v1_context_runs_batches_with_raw_results() {
    for context in every_context("addsub_int32") {
        assert_eq!(context.model().max_batch_size, 8);
        let mut run = context.new_run();
        let outputs =
            vec![("OUTPUT0".into(), OutputFormat::Raw), ("OUTPUT1".into(), OutputFormat::Raw)];
        run.set_options(&RunOptions { batch_size: 2, outputs, ..RunOptions::default() }).unwrap();
        for entry in 0..2 {
            run.input("INPUT0").unwrap().set_raw(int32(&[10 + entry; 16])).unwrap();
            run.input("INPUT1").unwrap().set_raw(int32(&[1; 16])).unwrap();
        }
        let mut results = context.run(&run).unwrap();
        assert_eq!((results.model.as_str(), results.version), ("addsub_int32", 1));
        assert!(results.request_id > 0);
        let sum = results.output("OUTPUT0").unwrap();
        assert_eq!(sum.raw_shape().unwrap(), [16]);
        assert_eq!(*sum.raw(1).unwrap(), int32(&[12; 16]));
        assert_eq!(sum.raw_at_cursor(0, 4).unwrap(), int32(&[11]));
        assert_eq!(sum.raw_at_cursor(0, 4).unwrap(), int32(&[11]));
        let error = sum.raw_at_cursor(0, 60).unwrap_err();
        assert_eq!(error.message(), "attempt to read beyond end of result for output 'OUTPUT0'");
        let statistics = context.statistics();
        assert_eq!(statistics.completed_request_count, 1);
        assert!(statistics.cumulative_total_request_time_ns > 0);
    }
}

#[test]
fn v1_context_returns_classes_and_strings() {
    for context in every_context("classes") {
        let mut run = context.new_run();
        let outputs = vec![("OUTPUT0".into(), OutputFormat::Class(2))];
        run.set_options(&RunOptions { outputs, ..RunOptions::default() }).unwrap();
        run.input("INPUT0").unwrap().set_raw(fp32(&[1.0, 5.0, 3.0, 0.0, 2.0])).unwrap();
        let mut results = context.run(&run).unwrap();
        let classes = results.output("OUTPUT0").unwrap();
        let first = classes.class_at_cursor(0).unwrap();
        assert_eq!((first.idx, first.value, first.label.as_str()), (1, 5.0, "green"));
        assert_eq!(classes.class_count(0).unwrap(), 2);
        assert!(classes.raw(0).unwrap_err().message().contains("non-RAW output 'OUTPUT0'"));
    }
    for context in every_context("identity_string") {
        let mut run = context.new_run();
        let outputs = vec![("OUTPUT0".into(), OutputFormat::Raw)];
        run.set_options(&RunOptions { batch_size: 2, outputs, ..RunOptions::default() }).unwrap();
        let input = run.input("INPUT0").unwrap();
        input.set_shape(&[2]).unwrap();
        input.set_strings(&["a", "bcd"]).unwrap();
        input.set_strings(&["", "e"]).unwrap();
        let mut results = context.run(&run).unwrap();
        let output = results.output("OUTPUT0").unwrap();
        assert_eq!(&output.raw(1).unwrap()[..], b"\0\0\0\0\x01\0\0\0e");
    }
}

#[test]
fn v1_asynchronous_runs_are_taken_or_call_back() {
    for context in every_context("addsub_int32") {
        let error = context.next_completed(true).unwrap_err();
        assert_eq!(error.message(), "No asynchronous requests have been sent");
        let mut run = context.new_run();
        let outputs = vec![("OUTPUT0".into(), OutputFormat::Raw)];
        run.set_options(&RunOptions { outputs, ..RunOptions::default() }).unwrap();
        let mut ids = Vec::new();
        for value in 0..3 {
            for (name, value) in [("INPUT0", value), ("INPUT1", 100)] {
                let input = run.input(name).unwrap();
                input.reset();
                input.set_raw(int32(&[value; 16])).unwrap();
            }
            ids.push(context.run_async(&run, None).unwrap());
        }
        assert_eq!(ids, [1, 2, 3]);
        for (value, id) in ids.into_iter().enumerate() {
            let mut results = context.take(id, true).unwrap().unwrap();
            let expected = int32(&[100 + value as i32; 16]);
            assert_eq!(*results.output("OUTPUT0").unwrap().raw(0).unwrap(), expected);
        }
        let (sender, called) = mpsc::channel();
        let callback = Box::new(move |id, results| sender.send((id, results)).unwrap());
        let id = context.run_async(&run, Some(callback)).unwrap();
        let (called_with, results) = called.recv().unwrap();
        assert_eq!(called_with, id);
        assert_eq!(results.unwrap().outputs.len(), 1);
        assert_eq!(context.statistics().completed_request_count, 4);
    }
}

#[test]
fn v1_stream_runs_a_sequence_and_reports_errors_of_single_requests() {
    let options =
        ContextOptions { correlation_id: 77, streaming: true, ..ContextOptions::new("sums") };
    let context = blocking::v1::Context::new(&settings(Protocol::Grpc), &options).unwrap();
    let mut run = context.new_run();
    let outputs = vec![("OUTPUT0".into(), OutputFormat::Raw)];
    for (flags, value, expected) in [(1, 5, 5), (0, 6, 11), (2, 7, 18)] {
        let outputs = outputs.clone();
        run.set_options(&RunOptions { flags, outputs, ..RunOptions::default() }).unwrap();
        let input = run.input("INPUT0").unwrap();
        input.reset();
        input.set_raw(int32(&[value])).unwrap();
        let mut results = context.run(&run).unwrap();
        assert_eq!(*results.output("OUTPUT0").unwrap().raw(0).unwrap(), int32(&[expected]));
    }
    // The sequence has ended: the next request must start one.
    let error = context.run(&run).unwrap_err();
    assert!(error.is_from_server() && error.id() == "4", "{error:?}");
    run.set_options(&RunOptions { flags: 1, outputs, ..RunOptions::default() }).unwrap();
    assert!(context.run(&run).is_ok());
}

#[test]
fn v1_asynchronous_runs_of_a_stream_are_sent_and_called_back_in_order() {
    let options =
        ContextOptions { correlation_id: 78, streaming: true, ..ContextOptions::new("sums") };
    let context = blocking::v1::Context::new(&settings(Protocol::Grpc), &options).unwrap();
    let mut run = context.new_run();
    let (sender, called) = mpsc::channel();
    let count = 200;
    for id in 1..=count {
        let outputs = vec![("OUTPUT0".into(), OutputFormat::Raw)];
        let flags = u32::from(id == 1) + 2 * u32::from(id == count);
        run.set_options(&RunOptions { flags, outputs, ..RunOptions::default() }).unwrap();
        let input = run.input("INPUT0").unwrap();
        input.reset();
        input.set_raw(int32(&[id])).unwrap();
        let sender = sender.clone();
        let callback = Box::new(move |id, results| sender.send((id, results)).unwrap());
        ok(context.run_async(&run, Some(callback)));
    }
    let mut sum = 0;
    for id in 1..=count {
        sum += id;
        let (called_with, results) = called.recv().unwrap();
        assert_eq!(called_with, id as u64);
        assert_eq!(*ok(results).output("OUTPUT0").unwrap().raw(0).unwrap(), int32(&[sum]));
    }
}

#[test]
fn v1_shared_memory() {
    for (client, protocol) in v1_clients().iter().zip([Protocol::Http, Protocol::Grpc]) {
        let name = format!("core_v1_{protocol}");
        let region =
            Region::create(&format!("/trtserver_{name}_{}", std::process::id()), 128).unwrap();
        region.write(0, &int32(&[3; 16])).unwrap();
        client.register_system_shared_memory(&name, region.key(), 0, 64).unwrap();
        let out = format!("{name}_out");
        client.register_system_shared_memory(&out, region.key(), 0, 128).unwrap();
        let status = client.shared_memory_status().unwrap();
        assert!(status.shared_memory_region.iter().any(|r| r.name == name && r.byte_size == 64));
        let context = context(protocol, "addsub_int32", false);
        let mut run = context.new_run();
        let memory = OutputFormat::SharedMemory { region: out.clone(), offset: 64, byte_size: 64 };
        let outputs = vec![("OUTPUT0".into(), memory)];
        run.set_options(&RunOptions { outputs, ..RunOptions::default() }).unwrap();
        run.input("INPUT0").unwrap().set_shared_memory(&name, 0, 64).unwrap();
        run.input("INPUT1").unwrap().set_raw(int32(&[1; 16])).unwrap();
        let mut results = context.run(&run).unwrap();
        let error = results.output("OUTPUT0").unwrap().raw(0).unwrap_err();
        assert_eq!(error.message(), "raw result not available for shared memory output 'OUTPUT0'");
        assert_eq!(region.read(64, 64).unwrap(), int32(&[4; 16]));
        client.unregister_shared_memory(&name).unwrap();
        client.unregister_shared_memory(&out).unwrap();
    }
}

#[test]
fn v1_low_level_stream_orders_by_id() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = v1::Client::new(&settings(Protocol::Grpc)).unwrap();
        let mut stream = client.stream().await.unwrap();
        let header = |id| {
            let text = format!(
                "batch_size: 1 id: {id} input {{ name: \"INPUT0\" dims: 2 }} output {{ name: \"OUTPUT0\" }}"
            );
            trtserver_proto::text::parse(&text).unwrap()
        };
        for (id, model) in [(8, "echo"), (9, "absent")] {
            let request = v1::InferRequest {
                model: model.into(),
                version: -1,
                header: header(id),
                inputs: vec![vec![fp32(&[1.0]), fp32(&[2.0])]],
                deadline: None,
            };
            stream.send(&request).await.unwrap();
        }
        let response = stream.next().await.unwrap().unwrap();
        assert_eq!((response.header.id, &response.outputs[0]), (8, &fp32(&[1.0, 2.0])));
        assert_eq!(stream.next().await.unwrap().unwrap_err().id(), "9");
        stream.close_requests();
        assert!(stream.next().await.is_none());
    });
}
