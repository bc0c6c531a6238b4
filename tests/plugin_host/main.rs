//! Message-level tests of `trtserver plugin-host`, the child process of isolated models.

#![allow(clippy::unwrap_used, reason = "also outside the tests' own functions it fails the test")]

mod host;

use host::{Host, Instance, command, facts};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use trtserver::plugin::isolated::messages::*;
use trtserver::request::DType;
use trtserver_plugin_api::abi::types::{code, tensor_flags};
use trtserver_tests::{probe, scheduled};

#[test]
fn start_by_hand_prints_usage() {
    let ended = command().stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let text = String::from_utf8(ended.stderr).unwrap();
    assert!(text.contains("no connection to a server") && text.contains("isolation=process"));
}

#[test]
fn describe_and_complete() {
    let mut host = Host::start();
    let done = host.ask(ask::What::Describe(Empty {}));
    let about = done.about.unwrap();
    assert_eq!((about.name.as_str(), about.abi_major, about.max_in_flight), ("probe", 1, 1));
    assert_eq!(about.platforms, ["probe", ""]);
    assert_eq!(about.stack_bytes, 8 << 20);
    // No model was opened.
    assert!(!heard(&host).contains("opened backend"), "{}", heard(&host));
    let bare = "name: 'm' backend: 'probe' parameters: { key: 'isolation' value: { string_value: 'process' } }";
    let patch = host.ask(ask::What::Complete(facts(bare))).patch.unwrap();
    let text = String::from_utf8(patch.data).unwrap();
    assert!(text.contains("INPUT0") && text.contains("OUTPUT0"), "{text}");
    assert!(heard(&host).contains("opened backend 'probe'"));
    // An unknown message is refused and does not end the child.
    let number = host.send(None, &[]);
    let failure = host.done(number).failure.unwrap();
    assert_eq!(failure.code, code::UNSUPPORTED);
    assert!(host.close().success());
}

/// The log so far.
fn heard(host: &Host) -> String {
    let lines = host.heard.iter().filter_map(|what| match what {
        tell::What::Log(record) => Some(record.text.as_str()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn open_errors_are_reported() {
    let mut host = Host::start();
    let failure = host.open(&probe("m", &[("fail_in", "model_open"), ("fail_code", "4")]));
    let failure = failure.unwrap_err();
    assert_eq!(
        (failure.code, failure.text.as_str()),
        (code::UNAVAILABLE, "told to fail in model_open")
    );
    assert!(host.instance(0).err().unwrap().text.contains("not open"));
    // A retry uses a new child.
    assert!(host.open(&probe("m", &[])).unwrap_err().text.contains("already"));
    assert!(host.close().success());
    let mut host = Host::start();
    host.open(&probe("m", &[("fail_in", "instance_open m_1")])).unwrap();
    let mut first = host.instance(0).unwrap();
    assert!(host.instance(1).err().unwrap().text.contains("told to fail in instance_open m_1"));
    first.send(vec![first.call(1, &[1.0], &[])]);
    let answer = first.answer();
    assert_eq!(first.floats(&answer), [1.0]);
    // A second model is refused.
    assert!(host.open(&probe("m", &[])).unwrap_err().text.contains("already"));
    assert!(host.close().success());
    first.closed();
    assert!(heard(&host).contains("closed backend 'probe'"));
}

#[test]
fn tensors_are_exchanged_through_shared_memory() {
    let (mut host, mut instance) = Host::probe(&[]);
    let large: Vec<f32> = (0..300_000).map(|i| i as f32).collect();
    for commands in [&[][..], &[("adopt", "true")], &[("merge", "true")], &[("detach", "true")]] {
        let calls = vec![instance.call(1, &large, commands), instance.call(2, &large, commands)];
        let loans: Vec<_> = calls.iter().map(|c| c.inputs[0].offset).collect();
        instance.send(calls);
        // Another shape, which is not merged with the others.
        instance.send(vec![instance.call(3, &[], commands)]);
        let mut answers: Vec<_> = (0..3).map(|_| instance.answer()).collect();
        answers.sort_by_key(|a| a.key);
        for (answer, want) in answers.iter().zip([&large[..], &large, &[]]) {
            assert!(answer.last, "{commands:?}");
            assert_eq!(instance.floats(answer), want);
            let output = &answer.response.as_ref().unwrap().outputs[0];
            assert_eq!(output.shape, [1, want.len() as i64]);
            let [_, compute, _, _] = answer.times[..] else { panic!("{:?}", answer.times) };
            assert!(compute > 0 || commands.contains(&("detach", "true")), "{:?}", answer.times);
        }
        // Loans are returned: the blocks are reused soon after the response.
        instance.send(vec![instance.call(4, &[1.0], &[])]);
        instance.answer();
        let again = instance.call(5, &large, &[]).inputs[0].offset;
        assert!(loans.contains(&again), "{commands:?}: {again} is not among {loans:?}");
    }
    assert!(host.close().success());
}

#[test]
fn multiple_responses_errors_and_missing_outputs() {
    let (mut host, mut instance) = Host::probe(&[]);
    for detach in ["false", "true"] {
        let commands = [("responses", "3"), ("detach", detach)];
        instance.send(vec![instance.call(1, &[7.0], &commands)]);
        for last in [false, false, true] {
            let answer = instance.answer();
            assert_eq!((answer.key, answer.last), (1, last));
            assert_eq!(instance.floats(&answer), [7.0]);
        }
    }
    let none = instance.call(2, &[7.0], &[("responses", "0")]);
    let fails = instance.call(3, &[7.0], &[("fail", "no luck"), ("fail_code", "3")]);
    let omits = instance.call(4, &[7.0], &[("garbage", "never")]);
    let wrong = instance.call(5, &[7.0], &[("garbage", "wrong_dtype")]);
    instance.send(vec![none, fails, omits, wrong]);
    let end = instance.answer();
    assert_eq!((end.key, end.last, &end.response, &end.failure), (2, true, &None, &None));
    let mut failed = |key| {
        let answer = instance.answer();
        assert_eq!((answer.key, answer.last), (key, true));
        answer.failure.unwrap()
    };
    let failure = failed(3);
    assert_eq!((failure.code, failure.text.as_str()), (code::INVALID, "no luck"));
    assert!(failed(5).text.contains("with data type TYPE_INT32"));
    let text = "model 'm': its backend ended the batch without answering the request";
    assert_eq!(failed(4).text, text);
    // A batch that fails or panics fails each request; the instance continues.
    for (command, text) in [("fail_in", "told to fail in execute"), ("panic_in", "told to panic")] {
        instance.send(vec![instance.call(6, &[7.0], &[(command, "execute")])]);
        let failure = instance.answer().failure.unwrap();
        assert!(failure.text.contains(text), "{failure:?}");
    }
    // A missing output is left out; the host knows the requested outputs.
    instance.send(vec![instance.call(7, &[7.0], &[("garbage", "missing_output")])]);
    assert_eq!(instance.answer().response.unwrap().outputs, []);
    assert!(host.close().success());
}

#[test]
fn cancellation_before_during_and_after_execution() {
    let (mut host, mut instance) = Host::probe(&[]);
    for detach in ["false", "true"] {
        let waits =
            |key| instance.call(key, &[7.0], &[("until_cancelled", "true"), ("detach", detach)]);
        // The plugin logs that it waits.
        instance.send(vec![waits(1)]);
        while !heard(&host).contains("waits to be cancelled") {
            let told = host.tell();
            host.heard.push(told);
        }
        host.heard.clear();
        host.cancel(0, 1);
        assert_eq!(instance.answer().failure.unwrap().code, code::CANCELLED);
        // Cancellations too late, of unknown requests and instances, and before the request, which has arrived once a later message
        // is answered.
        host.cancel(0, 1);
        host.cancel(7, 1);
        host.cancel(0, 2);
        host.ask(ask::What::Describe(Empty {}));
        instance.send(vec![instance.call(
            2,
            &[7.0],
            &[("until_cancelled", "true"), ("detach", detach)],
        )]);
        assert_eq!(instance.answer().failure.unwrap().code, code::CANCELLED);
    }
    assert!(host.close().success());
}

#[test]
fn invalid_memory_range_is_an_error() {
    let (mut host, mut instance) = Host::probe(&[]);
    let spoiled = |spoil: fn(&mut Call)| {
        let mut call = instance.call(1, &[7.0], &[]);
        spoil(&mut call);
        call
    };
    let calls = [
        (spoiled(|c| c.inputs[0].offset = 1 << 50), "not in the shared memory"),
        (spoiled(|c| c.inputs[0].offset = u64::MAX), "not in the shared memory"),
        // The loan table is not a tensor.
        (spoiled(|c| c.inputs[0].offset = 64), "not in the shared memory"),
        (spoiled(|c| c.inputs[0].bytes = 1 << 40), "not in the shared memory"),
        (spoiled(|c| c.inputs[0].slot = u32::MAX), "not in the shared memory"),
        (spoiled(|c| c.inputs[0].index = 1), "input number 1"),
        (
            spoiled(|c| c.inputs[0].shape = vec![1, 2]),
            "has 4 bytes for input 'INPUT0' of shape [1,2]",
        ),
        (spoiled(|c| c.inputs[0].shape = vec![-1, -1]), "of shape [-1,-1]"),
        (spoiled(|c| c.wanted = vec![9, 0]), "output number 9"),
    ];
    for (call, text) in calls {
        let good = instance.call(2, &[7.0], &[]);
        instance.send(vec![call, good]);
        let failure = instance.answer().failure.unwrap();
        assert!(failure.text.contains(text), "{failure:?}");
        let answer = instance.answer();
        assert_eq!((answer.key, instance.floats(&answer)), (2, vec![7.0]));
    }
    instance.send(vec![]);
    assert!(host.close().success());
}

#[test]
fn close_waits_for_outstanding_requests() {
    let (mut host, mut instance) = Host::probe(&[]);
    let mut other = host.instance(1).unwrap();
    instance.send(vec![instance.call(
        1,
        &[7.0],
        &[("until_cancelled", "true"), ("detach", "true")],
    )]);
    other.send(vec![other.call(1, &[7.0], &[("delay_ms", "30")])]);
    other.send(vec![other.call(2, &[8.0], &[])]);
    let closing = host.send(Some(ask::What::Close(Empty {})), &[]);
    for value in [7.0, 8.0] {
        let answer = other.answer();
        assert_eq!(other.floats(&answer), [value]);
    }
    other.closed();
    // Cancellation also works while closing.
    host.cancel(0, 1);
    assert_eq!(instance.answer().failure.unwrap().code, code::CANCELLED);
    instance.closed();
    assert_eq!(host.done(closing).failure, None);
    assert!(host.wait().success());
}

#[test]
fn signals_for_the_host_are_ignored() {
    let (mut host, mut instance) = Host::probe(&[]);
    instance.send(vec![instance.call(1, &[7.0], &[("delay_ms", "30")])]);
    host.signal(Signal::INT);
    host.signal(Signal::TERM);
    let answer = instance.answer();
    assert_eq!(instance.floats(&answer), [7.0]);
    assert!(host.close().success());
}

#[test]
fn child_exits_with_its_host() {
    let (mut host, instance) = Host::probe(&[]);
    // Executes longer than the test may last.
    instance.send(vec![instance.call(1, &[7.0], &[("delay_ms", "3600000")])]);
    host.hang_up();
    assert_eq!(host.wait().signal(), Some(9));

    let mut host = Host::start();
    host.babble();
    assert_eq!(host.wait().code(), Some(1));
    assert!(host.last_words().contains("trtserver plugin-host: "));
}

#[test]
fn host_inputs_are_passed_as_in_a_local_model() {
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
        let wanted = vec![0, 0, 1, 0, 2, 0];
        instance.send(vec![Call { key: 1, batch: 1, inputs, wanted, ..Call::default() }]);
        let answer = instance.answer();
        let outputs = answer.response.unwrap().outputs;
        assert_eq!(outputs.iter().map(|o| o.index).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(instance.read(&outputs[0]), number(sum));
        assert_eq!(instance.read(&outputs[2]), number(sum));
    }
    assert!(host.close().success());
}

#[test]
fn changed_metrics_are_reported() {
    let (mut host, mut instance) = Host::probe(&[("count", "probe_requests")]);
    for key in 0..100 {
        instance.send(vec![instance.call(key, &[7.0], &[])]);
        instance.answer();
    }
    assert!(host.close().success());
    let made: Vec<_> = host.heard.iter().filter_map(metric).collect();
    let [metric] = made[..] else { panic!("{:?}", host.heard) };
    assert_eq!((metric.name.as_str(), metric.kind), ("probe_requests", 0));
    assert_eq!(metric.labels, ["at", "m_0"]);
    let values = host.heard.iter().filter_map(|what| match what {
        tell::What::Value(value) => Some((value.number, value.value)),
        _ => None,
    });
    let values: Vec<_> = values.collect();
    assert_eq!(values.last(), Some(&(metric.number, 100.0)));
    assert!(values.len() < 50, "{values:?}");
}

fn metric(what: &tell::What) -> Option<&Metric> {
    match what {
        tell::What::Metric(metric) => Some(metric),
        _ => None,
    }
}

#[test]
fn requests_leak_no_memory() {
    let (mut host, mut instance) = Host::probe(&[]);
    let mut run = |batches: u64| {
        for batch in 0..batches {
            let commands: &[_] = match batch % 4 {
                0 => &[("adopt", "true")],
                1 => &[("responses", "2")],
                _ => &[],
            };
            instance.send((0..8).map(|i| instance.call(batch * 8 + i, &[7.0], commands)).collect());
            answers(&mut instance, 8);
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
fn answers(instance: &mut Instance, calls: usize) {
    let mut over = 0;
    while over < calls {
        let answer = instance.answer();
        instance.floats(&answer);
        over += usize::from(answer.last);
    }
}
