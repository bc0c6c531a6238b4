//! v1: status, model control, contexts, streams and shared memory.

use super::{fp32, int32, ok, settings};
use std::sync::mpsc;
use trtserver_client::shared_memory::Region;
use trtserver_client::v1::{ContextOptions, OutputFormat, RunOptions};
use trtserver_client::{Protocol, Settings, blocking, v1};
use trtserver_tests::{Server, probe};

fn v1_clients() -> [blocking::v1::BlockingClient; 2] {
    [Protocol::Http, Protocol::Grpc]
        .map(|protocol| ok(blocking::v1::BlockingClient::new(&settings(protocol))))
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
        let client = blocking::v1::BlockingClient::new(&settings).unwrap();
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
