//! `trtserver plugin-host`, the child process of an isolated model, tested without a server.

#![allow(clippy::unwrap_used, reason = "a panic outside a test function also fails the test")]

mod host;

use host::{Host, Instance, command, facts};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use trtserver_isolation::messages::*;
use trtserver_plugin_api::abi::types::{code, tensor_flags};
use trtserver_request::DType;
use trtserver_tests::{probe, scheduled};

#[test]
fn missing_connection_is_explained() {
    let ended = command().stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let text = String::from_utf8(ended.stderr).unwrap();
    assert!(text.contains("not a connection to a server") && text.contains("isolation=process"));
}

#[test]
fn sends_backend_info_and_completes_configurations() {
    let mut host = Host::start();
    let response = host.request(control_request::RequestKind::Describe(EmptyMessage {}));
    let info = response.backend.unwrap();
    assert_eq!((info.name.as_str(), info.abi_major, info.max_in_flight), ("probe", 1, 1));
    assert_eq!(info.platforms, ["probe", ""]);
    assert_eq!(info.stack_bytes, 8 << 20);
    // The backend is not opened for that.
    assert!(!log(&host).contains("opened backend"), "{}", log(&host));
    let bare = "name: 'm' backend: 'probe' parameters: { key: 'isolation' value: { string_value: 'process' } }";
    let patch = host.request(control_request::RequestKind::Complete(facts(bare))).patch.unwrap();
    let text = String::from_utf8(patch.data).unwrap();
    assert!(text.contains("INPUT0") && text.contains("OUTPUT0"), "{text}");
    assert!(log(&host).contains("opened backend 'probe'"));
    // An unknown request is refused and does not end the child.
    let number = host.send(None, &[]);
    let failure = host.response(number).failure.unwrap();
    assert_eq!(failure.code, code::UNSUPPORTED);
    assert!(host.close().success());
}

/// The log so far.
fn log(host: &Host) -> String {
    let lines = host.received.iter().filter_map(|what| match what {
        control_message::MessageKind::Log(record) => Some(record.text.as_str()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn open_errors_are_returned() {
    let mut host = Host::start();
    let failure = host.open(&probe("m", &[("fail_in", "model_open"), ("fail_code", "4")]));
    let failure = failure.unwrap_err();
    assert_eq!(
        (failure.code, failure.text.as_str()),
        (code::UNAVAILABLE, "told to fail in model_open")
    );
    assert!(host.instance(0).err().unwrap().text.contains("not open"));
    // A second attempt needs another child.
    assert!(host.open(&probe("m", &[])).unwrap_err().text.contains("already"));
    assert!(host.close().success());
    let mut host = Host::start();
    host.open(&probe("m", &[("fail_in", "instance_open m_1")])).unwrap();
    let mut first = host.instance(0).unwrap();
    assert!(host.instance(1).err().unwrap().text.contains("told to fail in instance_open m_1"));
    first.send(vec![first.message(1, &[1.0], &[])]);
    let response = first.response();
    assert_eq!(first.floats(&response), [1.0]);
    // A child opens one model only.
    assert!(host.open(&probe("m", &[])).unwrap_err().text.contains("already"));
    assert!(host.close().success());
    first.assert_closed();
    assert!(log(&host).contains("closed backend 'probe'"));
}

#[test]
fn tensors_travel_through_shared_memory() {
    let (mut host, mut instance) = Host::probe(&[]);
    let large: Vec<f32> = (0..300_000).map(|i| i as f32).collect();
    for commands in [&[][..], &[("adopt", "true")], &[("merge", "true")], &[("detach", "true")]] {
        let calls =
            vec![instance.message(1, &large, commands), instance.message(2, &large, commands)];
        let offsets: Vec<_> = calls.iter().map(|c| c.inputs[0].offset).collect();
        instance.send(calls);
        // This input has another shape, so it cannot be gathered with the others.
        instance.send(vec![instance.message(3, &[], commands)]);
        let mut responses: Vec<_> = (0..3).map(|_| instance.response()).collect();
        responses.sort_by_key(|a| a.key);
        for (response, want) in responses.iter().zip([&large[..], &large, &[]]) {
            assert!(response.last, "{commands:?}");
            assert_eq!(instance.floats(response), want);
            let output = &response.data.as_ref().unwrap().outputs[0];
            assert_eq!(output.shape, [1, want.len() as i64]);
            let [_, compute, _, _] = response.times[..] else { panic!("{:?}", response.times) };
            assert!(compute > 0 || commands.contains(&("detach", "true")), "{:?}", response.times);
        }
        // The child has released the inputs: their blocks are allocated again.
        instance.send(vec![instance.message(4, &[1.0], &[])]);
        instance.response();
        let reused = instance.message(5, &large, &[]).inputs[0].offset;
        assert!(offsets.contains(&reused), "{commands:?}: {reused} is not among {offsets:?}");
    }
    assert!(host.close().success());
}

#[test]
fn several_responses_errors_and_omissions() {
    let (mut host, mut instance) = Host::probe(&[]);
    for detach in ["false", "true"] {
        let commands = [("responses", "3"), ("detach", detach)];
        instance.send(vec![instance.message(1, &[7.0], &commands)]);
        for last in [false, false, true] {
            let response = instance.response();
            assert_eq!((response.key, response.last), (1, last));
            assert_eq!(instance.floats(&response), [7.0]);
        }
    }
    let none = instance.message(2, &[7.0], &[("responses", "0")]);
    let fails = instance.message(3, &[7.0], &[("fail", "no luck"), ("fail_code", "3")]);
    let omits = instance.message(4, &[7.0], &[("garbage", "never")]);
    let wrong = instance.message(5, &[7.0], &[("garbage", "wrong_dtype")]);
    instance.send(vec![none, fails, omits, wrong]);
    let end = instance.response();
    assert_eq!((end.key, end.last, &end.data, &end.failure), (2, true, &None, &None));
    let mut failed = |key| {
        let response = instance.response();
        assert_eq!((response.key, response.last), (key, true));
        response.failure.unwrap()
    };
    let failure = failed(3);
    assert_eq!((failure.code, failure.text.as_str()), (code::INVALID, "no luck"));
    assert!(failed(5).text.contains("with data type TYPE_INT32"));
    let text = "model 'm': its backend ended the batch without responding to the request";
    assert_eq!(failed(4).text, text);
    // A failure or panic of execute fails each request, and the instance continues.
    for (command, text) in [("fail_in", "told to fail in execute"), ("panic_in", "told to panic")] {
        instance.send(vec![instance.message(6, &[7.0], &[(command, "execute")])]);
        let failure = instance.response().failure.unwrap();
        assert!(failure.text.contains(text), "{failure:?}");
    }
    // A missing output is left out; the host checks for requested ones.
    instance.send(vec![instance.message(7, &[7.0], &[("garbage", "missing_output")])]);
    assert_eq!(instance.response().data.unwrap().outputs, []);
    assert!(host.close().success());
}

#[test]
fn cancel_works_before_during_and_after_a_request() {
    let (mut host, mut instance) = Host::probe(&[]);
    for detach in ["false", "true"] {
        let waits = [1, 2].map(|key| {
            instance.message(key, &[7.0], &[("until_cancelled", "true"), ("detach", detach)])
        });
        let [first, second] = waits;
        instance.send(vec![first]);
        wait_for_waiting_probe(&mut host);
        host.cancel(0, 1);
        assert_eq!(instance.response().failure.unwrap().code, code::CANCELLED);
        // After the end, for an unknown instance, and before the request: the next control response
        // shows that it arrived.
        host.cancel(0, 1);
        host.cancel(7, 1);
        host.cancel(0, 2);
        host.request(control_request::RequestKind::Describe(EmptyMessage {}));
        instance.send(vec![second]);
        assert_eq!(instance.response().failure.unwrap().code, code::CANCELLED);
        // Its line must not pass for that of the next request.
        wait_for_waiting_probe(&mut host);
    }
    assert!(host.close().success());
}

/// The probe logs when it waits. The line may come after the response.
fn wait_for_waiting_probe(host: &mut Host) {
    while !log(host).contains("waits to be cancelled") {
        let message = host.receive();
        host.received.push(message);
    }
    host.received.clear();
}

#[test]
fn invalid_memory_ranges_are_errors() {
    let (mut host, mut instance) = Host::probe(&[]);
    let spoiled = |spoil: fn(&mut RequestMessage)| {
        let mut call = instance.message(1, &[7.0], &[]);
        spoil(&mut call);
        call
    };
    let calls = [
        (spoiled(|c| c.inputs[0].offset = 1 << 50), "invalid memory range"),
        (spoiled(|c| c.inputs[0].offset = u64::MAX), "invalid memory range"),
        // In the table of reference counts.
        (spoiled(|c| c.inputs[0].offset = 64), "invalid memory range"),
        (spoiled(|c| c.inputs[0].bytes = 1 << 40), "invalid memory range"),
        (spoiled(|c| c.inputs[0].slot = u32::MAX), "invalid memory range"),
        (spoiled(|c| c.inputs[0].index = 1), "input number 1"),
        (
            spoiled(|c| c.inputs[0].shape = vec![1, 2]),
            "has 4 bytes for input 'INPUT0' of shape [1,2]",
        ),
        (spoiled(|c| c.inputs[0].shape = vec![-1, -1]), "of shape [-1,-1]"),
        (spoiled(|c| c.requested_outputs = vec![9, 0]), "output number 9"),
    ];
    for (call, text) in calls {
        let good = instance.message(2, &[7.0], &[]);
        instance.send(vec![call, good]);
        let failure = instance.response().failure.unwrap();
        assert!(failure.text.contains(text), "{failure:?}");
        let response = instance.response();
        assert_eq!((response.key, instance.floats(&response)), (2, vec![7.0]));
    }
    instance.send(vec![]);
    assert!(host.close().success());
}

#[test]
fn close_waits_for_outstanding_requests() {
    let (mut host, mut instance) = Host::probe(&[]);
    let mut other = host.instance(1).unwrap();
    instance.send(vec![instance.message(
        1,
        &[7.0],
        &[("until_cancelled", "true"), ("detach", "true")],
    )]);
    other.send(vec![other.message(1, &[7.0], &[("delay_ms", "30")])]);
    other.send(vec![other.message(2, &[8.0], &[])]);
    let closing = host.send(Some(control_request::RequestKind::Close(EmptyMessage {})), &[]);
    for value in [7.0, 8.0] {
        let response = other.response();
        assert_eq!(other.floats(&response), [value]);
    }
    other.assert_closed();
    // Cancellation also works while it closes.
    host.cancel(0, 1);
    assert_eq!(instance.response().failure.unwrap().code, code::CANCELLED);
    instance.assert_closed();
    assert_eq!(host.response(closing).failure, None);
    assert!(host.wait().success());
}

#[test]
fn ignores_signals_to_the_process_group() {
    let (mut host, mut instance) = Host::probe(&[]);
    instance.send(vec![instance.message(1, &[7.0], &[("delay_ms", "30")])]);
    host.signal(Signal::INT);
    host.signal(Signal::TERM);
    let response = instance.response();
    assert_eq!(instance.floats(&response), [7.0]);
    assert!(host.close().success());
}

#[test]
fn exits_at_once_when_the_host_disconnects() {
    let (mut host, instance) = Host::probe(&[]);
    // Busy for longer than this test may last.
    instance.send(vec![instance.message(1, &[7.0], &[("delay_ms", "3600000")])]);
    host.disconnect();
    assert_eq!(host.wait().signal(), Some(9));

    let mut host = Host::start();
    host.send_malformed();
    assert_eq!(host.wait().code(), Some(1));
    assert!(host.stderr().contains("trtserver plugin-host: "));
}

#[test]
fn sequence_controls_and_states_reach_the_backend() {
    let config = scheduled::accumulator("m", 4, "state", "");
    let mut facts = facts(&config);
    let tensor = |name: &str, flags| TensorSpec {
        name: name.into(),
        dtype: DType::Int32.number(),
        dims: vec![1],
        flags,
        ..TensorSpec::default()
    };
    facts.inputs.push(tensor("READY", tensor_flags::CONTROL));
    facts.inputs.push(tensor("STATE_IN", tensor_flags::STATE));
    facts.outputs.push(tensor("STATE_OUT", 0));
    let mut host = Host::start();
    host.open_with(facts).unwrap();
    let mut instance = host.instance(0).unwrap();
    let number = |n: i32| n.to_le_bytes();
    for (ready, sum) in [(1, 42), (0, 0)] {
        let inputs = vec![
            instance.input(0, &[1, 1], &number(2)),
            instance.input(1, &[1, 1], &number(ready)),
            instance.input(2, &[1, 1], &number(40)),
        ];
        let requested_outputs = vec![0, 0, 1, 0, 2, 0];
        instance.send(vec![RequestMessage {
            key: 1,
            batch: 1,
            inputs,
            requested_outputs,
            ..RequestMessage::default()
        }]);
        let response = instance.response();
        let outputs = response.data.unwrap().outputs;
        assert_eq!(outputs.iter().map(|o| o.index).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(instance.read(&outputs[0]), number(sum));
        assert_eq!(instance.read(&outputs[2]), number(sum));
    }
    assert!(host.close().success());
}

#[test]
fn metrics_are_sent_when_they_change() {
    let (mut host, mut instance) = Host::probe(&[("count", "probe_requests")]);
    for key in 0..100 {
        instance.send(vec![instance.message(key, &[7.0], &[])]);
        instance.response();
    }
    assert!(host.close().success());
    let made: Vec<_> = host.received.iter().filter_map(metric).collect();
    let [metric] = made[..] else { panic!("{:?}", host.received) };
    assert_eq!((metric.name.as_str(), metric.kind), ("probe_requests", 0));
    assert_eq!(metric.labels, ["at", "m_0"]);
    let values = host.received.iter().filter_map(|what| match what {
        control_message::MessageKind::Value(value) => Some((value.number, value.value)),
        _ => None,
    });
    let values: Vec<_> = values.collect();
    assert_eq!(values.last(), Some(&(metric.number, 100.0)));
    assert!(values.len() < 50, "{values:?}");
}

fn metric(what: &control_message::MessageKind) -> Option<&MetricMessage> {
    match what {
        control_message::MessageKind::Metric(metric) => Some(metric),
        _ => None,
    }
}

#[test]
fn memory_does_not_grow_with_requests() {
    let (mut host, mut instance) = Host::probe(&[]);
    let mut run = |batches: u64| {
        for batch in 0..batches {
            let commands: &[_] = match batch % 4 {
                0 => &[("adopt", "true")],
                1 => &[("responses", "2")],
                _ => &[],
            };
            instance
                .send((0..8).map(|i| instance.message(batch * 8 + i, &[7.0], commands)).collect());
            read_until_final(&mut instance, 8);
        }
    };
    run(200);
    let before = host.memory();
    run(500);
    let grown = host.memory().saturating_sub(before);
    assert!(grown < 1024, "{grown} KiB for 4000 requests");
    assert!(host.close().success());
}

/// Reads until this many requests have ended.
fn read_until_final(instance: &mut Instance, calls: usize) {
    let mut over = 0;
    while over < calls {
        let response = instance.response();
        instance.floats(&response);
        over += usize::from(response.last);
    }
}
