//! Unit tests of ensembles, whose models respond when the test makes them.

use super::testing::{Setup, ensemble, error, request, respond};
use std::sync::Arc;
use trtserver_base::error::{Code, Error};
use trtserver_request::testing::RecordedResponses;
use trtserver_request::{CorrelationId, InferResponse, ParameterValue, RequestSequence};

/// Names and shapes of the outputs of the single response.
fn outputs(responses: &RecordedResponses) -> Vec<(String, Vec<i64>)> {
    let responses = responses.lock();
    assert_eq!((responses.len(), responses[0].1), (1, true), "{responses:?}");
    let response = responses[0].0.as_ref().unwrap().as_ref().unwrap();
    response.outputs.iter().map(|o| (o.name.to_string(), o.shape.to_vec())).collect()
}

fn is_pending(responses: &RecordedResponses) -> bool {
    responses.lock().is_empty()
}

#[test]
fn tensors_pass_from_step_to_step_by_reference() {
    let (e, models) = ensemble("b:I=t>O=out a:I=in>O=t", &Setup::default());
    let (request, stats, responses) = request(&e, "out", &[1, 2]);
    let data = request.inputs[0].data.as_ptr();
    e.submit(request);
    assert_eq!(models.waiting("a b"), [1, 0]);
    models.model("a").respond();
    assert_eq!(models.waiting("a b"), [0, 1]);
    assert!(is_pending(&responses));
    models.model("b").respond();
    assert_eq!(outputs(&responses), [("out".to_owned(), vec![1, 2])]);
    let got = responses.lock().remove(0).0.unwrap().unwrap();
    assert_eq!(got.outputs[0].data.as_ptr(), data);
    let counters = stats.snapshot();
    let total = counters.total();
    assert_eq!((total.success.count, total.queue.count, total.compute_infer.count), (1, 1, 1));
    assert_eq!((counters.execution_count, counters.inference_count), (1, 1));
    assert_eq!(models.model("a").stats.snapshot().total().success.count, 1);
}

#[test]
fn step_waits_for_all_its_inputs() {
    let steps = "a:I=in>O=t b:I=t>O=u c:I=t>O=v d:I=u,J=v>O=out,P=out2";
    for sides in [["b", "c"], ["c", "b"]] {
        let (e, models) = ensemble(steps, &Setup::default());
        let (request, _, responses) = request(&e, "out2 out", &[3, 2]);
        e.submit(request);
        assert_eq!(models.waiting("a b c d"), [1, 0, 0, 0]);
        models.model("a").respond();
        assert_eq!(models.waiting("a b c d"), [0, 1, 1, 0]);
        models.model(sides[0]).respond();
        assert_eq!(models.waiting("d"), [0]);
        models.model(sides[1]).respond();
        let last = models.model("d").take();
        assert_eq!((last.inputs.len(), last.context().batch), (2, 3));
        assert!(is_pending(&responses));
        let named = |name: &str| trtserver_request::OutputTensor {
            name: name.into(),
            dtype: trtserver_request::DType::Fp32,
            shape: [3, 2][..].into(),
            data: last.inputs[0].data.clone(),
        };
        let response = InferResponse {
            outputs: [named("O"), named("P")].into_iter().collect(),
            ..Default::default()
        };
        respond(&last, Ok(response));
        // In requested order.
        let shape = vec![3, 2];
        assert_eq!(
            outputs(&responses),
            [("out2".to_owned(), shape.clone()), ("out".to_owned(), shape)]
        );
    }
}

#[test]
fn only_steps_that_requested_outputs_depend_on_run() {
    let steps = "a:I=in>O=t,P=u b:I=t>O=out,P=x c:I=u>O=out2 d:I=x>O=y";
    for (requested, first, rest) in [
        ("out", &[0][..], [1, 0, 0]),
        ("out2", &[1], [0, 1, 0]),
        ("out out2", &[0, 1], [1, 1, 0]),
        // A v1 request for no output has all outputs computed.
        ("", &[0, 1], [1, 1, 0]),
    ] {
        let (e, models) = ensemble(steps, &Setup::default());
        let (request, _, responses) = request(&e, requested, &[1, 2]);
        e.submit(request);
        let asked: Vec<_> = {
            let first = models.model("a").take();
            let asked = first.context().outputs.iter().map(|w| w.index()).collect();
            models.model("a").submit_again(first);
            asked
        };
        assert_eq!(asked, first, "{requested}");
        models.model("a").respond();
        assert_eq!(models.waiting("b c d"), rest, "{requested}");
        for name in ["b", "c"].into_iter().zip(rest).filter(|(_, n)| *n > 0).map(|(name, _)| name) {
            // Without the output that only an unneeded step reads.
            let model = models.model(name);
            let request = model.take();
            assert_eq!(request.context().outputs.len(), 1, "{requested}");
            model.submit_again(request);
            model.respond();
        }
        assert_eq!(outputs(&responses).len(), requested.split_whitespace().count(), "{requested}");
    }
}

#[test]
fn first_error_ends_the_request_and_cancels_other_steps() {
    let (e, models) = ensemble("a:I=in>O=out b:I=in>O=out2", &Setup::default());
    let (request, stats, responses) = request(&e, "out out2", &[1, 2]);
    e.submit(request);
    let [a, b] = ["a", "b"].map(|name| models.model(name).take());
    respond(&a, Err(Error::internal("no luck")));
    assert_eq!(error(&responses), (Code::Internal, "in ensemble 'e', no luck".to_owned()));
    assert!(b.cancel_token().is_cancelled());
    respond(&b, Err(Error::internal("neither")));
    assert_eq!(error(&responses).1, "in ensemble 'e', no luck");
    // Reason OTHER, for the request and for its failed step, as Triton counts.
    assert_eq!(stats.snapshot().failures, [0, 0, 0, 2, 0]);
}

#[test]
fn refusal_by_a_step_ends_the_request() {
    let setup = Setup { refusing: "b d", ..Setup::default() };
    // Among the first steps, and later.
    for steps in [
        "a:I=in>O=out b:I=in>O=out2",
        "b:I=in>O=out2 a:I=in>O=out",
        "a:I=in>O=t d:I=t>O=out b:I=t>O=out2",
    ] {
        let (e, models) = ensemble(steps, &setup);
        let (request, stats, responses) = request(&e, "out out2", &[1, 2]);
        e.submit(request);
        if steps.contains('d') {
            models.model("a").respond();
        }
        let text = "in ensemble 'e', Exceeds maximum queue size".to_owned();
        assert_eq!(error(&responses), (Code::Unavailable, text), "{steps}");
        // As any failure of a step.
        assert_eq!(stats.snapshot().failures, [0, 0, 0, 2, 0], "{steps}");
        if !steps.contains('d') && models.model("a").waiting() > 0 {
            assert!(models.model("a").take().cancel_token().is_cancelled());
        }
    }
}

#[test]
fn cancel_reaches_executing_steps() {
    let (e, models) = ensemble("a:I=in>O=t b:I=in>O=u c:I=t,J=u>O=out", &Setup::default());
    let (request, stats, responses) = request(&e, "out", &[1, 2]);
    let responder = Arc::clone(&request.responder);
    e.submit(request);
    responder.cancel_token.cancel();
    let [a, b] = ["a", "b"].map(|name| models.model(name).take());
    assert!(a.cancel_token().is_cancelled() && b.cancel_token().is_cancelled());
    respond(&a, Err(Error::new(Code::Cancelled, "stopped")));
    assert_eq!(error(&responses), (Code::Cancelled, "in ensemble 'e', stopped".to_owned()));
    assert_eq!(stats.snapshot().failures, [0, 1, 0, 0, 0]);
    drop(b);
    assert_eq!(models.waiting("c"), [0]);
}

#[test]
fn cancelled_request_ends_between_steps() {
    let (e, models) = ensemble("a:I=in>O=t b:I=t>O=out", &Setup::default());
    let (first, _, responses) = request(&e, "out", &[1, 2]);
    let responder = Arc::clone(&first.responder);
    e.submit(first);
    responder.cancel_token.cancel();
    models.model("a").respond();
    let text = "in ensemble 'e', request was cancelled".to_owned();
    assert_eq!(error(&responses), (Code::Cancelled, text.clone()));
    assert_eq!(models.waiting("b"), [0]);
    // Cancelled before submission.
    let (late, _, responses) = request(&e, "out", &[1, 2]);
    late.cancel_token().cancel();
    e.submit(late);
    assert_eq!(error(&responses), (Code::Cancelled, text));
    assert_eq!(models.waiting("a"), [0]);
}

#[test]
fn batch_dimension_is_added_or_removed() {
    // Ensemble and models as (maximum batch size, dims); shapes of the request, of the step's input
    // and of the response.
    type Form = (u32, &'static [i64]);
    type Shapes = [&'static [i64]; 3];
    let rows: &[(Form, Form, Shapes)] = &[
        ((8, &[2]), (8, &[2]), [&[3, 2], &[3, 2], &[3, 2]]),
        ((0, &[2]), (8, &[2]), [&[2], &[1, 2], &[2]]),
        ((0, &[-1, 2]), (8, &[2]), [&[3, 2], &[3, 2], &[3, 2]]),
        ((0, &[2]), (0, &[2]), [&[2], &[2], &[2]]),
        ((0, &[-1]), (8, &[-1]), [&[0], &[1, 0], &[0]]),
        ((8, &[2]), (0, &[-1, 2]), [&[3, 2], &[3, 2], &[3, 2]]),
        ((8, &[2]), (0, &[2]), [&[1, 2], &[2], &[1, 2]]),
    ];
    for &(own, step, [given, seen, got]) in rows {
        let setup = Setup { ensemble: own, models: step, refusing: "" };
        let (e, models) = ensemble("a:I=in>O=t b:I=t>O=out", &setup);
        let (request, _, responses) = request(&e, "out", given);
        e.submit(request);
        for name in ["a", "b"] {
            let request = models.model(name).take();
            assert_eq!(request.inputs[0].shape.as_slice(), seen, "{own:?} {step:?}");
            let batch = if step.0 > 0 { seen[0] } else { 1 };
            assert_eq!(i64::from(request.context().batch), batch, "{own:?} {step:?}");
            models.model(name).submit_again(request);
            models.model(name).respond();
        }
        assert_eq!(outputs(&responses), [("out".to_owned(), got.to_vec())], "{own:?} {step:?}");
    }
}

#[test]
fn shape_mismatch_is_an_error() {
    let setup = Setup { ensemble: (0, &[-1]), models: (0, &[2]), refusing: "" };
    let (e, _) = ensemble("a:I=in>O=out", &setup);
    let (first, _, responses) = request(&e, "out", &[3]);
    e.submit(first);
    let text = "in ensemble 'e', [request id: r] unexpected shape for input 'I' for model 'a'. Expected [2], got [3]. ";
    assert_eq!(error(&responses), (Code::InvalidArg, text.to_owned()));
    let setup = Setup { ensemble: (0, &[2]), models: (0, &[-1]), refusing: "" };
    let (e, models) = ensemble("a:I=in>O=out", &setup);
    let (second, _, responses) = request(&e, "out", &[3]);
    e.submit(second);
    models.model("a").respond();
    let text = "in ensemble 'e', output 'out' for model 'e' has shape [3] but model configuration specifies shape [2]";
    assert_eq!(error(&responses).1, text);
}

#[test]
fn step_without_batching_must_keep_the_batch_size() {
    let setup = Setup { ensemble: (8, &[2]), models: (0, &[-1, 2]), refusing: "" };
    let (e, models) = ensemble("a:I=in>O=out", &setup);
    let (request, _, responses) = request(&e, "out", &[3, 2]);
    e.submit(request);
    let mut seen = models.model("a").take();
    seen.inputs[0].shape = [4, 2].into_iter().collect();
    models.model("a").submit_again(seen);
    models.model("a").respond();
    let text = "in ensemble 'e', output 'out' for model 'e' has shape [4,2], but the request has batch size 3";
    assert_eq!(error(&responses).1, text);
}

#[test]
fn optional_inputs_and_outputs_may_be_absent() {
    // An optional input of the ensemble.
    let (e, models) = ensemble("a:I=in,J=in2>O=out", &Setup::default());
    let (first, _, responses) = request(&e, "out", &[1, 2]);
    e.submit(first);
    models.model("a").respond();
    assert_eq!(outputs(&responses).len(), 1);
    // An output that a model leaves out, which its readers require or not.
    let missing = "in ensemble 'e', [request id: r] expected number of inputs between 1 and 2 but got 0 inputs \
                   for model 'b'. Got input(s) [], but missing required input(s) ['I']. \
                   Please provide all required input(s).";
    for (steps, next, expected) in [
        ("a:I=in>O=t b:I=in,J=t>O=out", Some("b"), Ok(1)),
        ("a:I=in>O=t b:I=t>O=out", None, Err(missing)),
        ("a:I=in>O=out", None, Ok(0)),
        ("a:I=in>O=t b:I=in,J=t>O=u c:I=in,J=u>O=out", Some("b c"), Ok(1)),
    ] {
        let (e, models) = ensemble(steps, &Setup::default());
        let (request, stats, responses) = request(&e, "out", &[1, 2]);
        e.submit(request);
        respond(&models.model("a").take(), Ok(InferResponse::default()));
        for name in next.into_iter().flat_map(|names| names.split(' ')) {
            models.model(name).respond();
        }
        match expected {
            Ok(count) => assert_eq!(outputs(&responses).len(), count, "{steps}"),
            Err(text) => {
                assert_eq!(error(&responses).1, text, "{steps}");
                assert_eq!(stats.snapshot().failures, [0, 0, 0, 1, 0]);
            }
        }
    }
}

#[test]
fn step_without_any_input_has_the_batch_size_of_the_request() {
    let (e, models) = ensemble("a:I=in>O=t free:J=t>O=out", &Setup::default());
    let (request, _, responses) = request(&e, "out", &[3, 2]);
    e.submit(request);
    respond(&models.model("a").take(), Ok(InferResponse::default()));
    let step = models.model("free").take();
    assert_eq!((step.inputs.len(), step.context().batch), (0, 3));
    respond(&step, Ok(InferResponse::default()));
    assert_eq!(outputs(&responses).len(), 0);
}

#[test]
fn intermediate_tensor_may_be_an_output() {
    let (e, models) = ensemble("a:I=in>O=out b:I=out>O=out2", &Setup::default());
    let (request, _, responses) = request(&e, "out2 out", &[1, 2]);
    e.submit(request);
    models.model("a").respond();
    models.model("b").respond();
    assert_eq!(outputs(&responses).len(), 2);
}

#[test]
fn pinned_ensemble_keeps_unloaded_models() {
    let (e, models) = ensemble("a:I=in>O=t b:I=t>O=out", &Setup::default());
    let held = e.pinned().unwrap();
    let b = models.model("b");
    models.remove("b");
    let (first, stats, responses) = request(&e, "out", &[1, 2]);
    e.submit(first);
    assert_eq!(error(&responses), (Code::NotFound, "in ensemble 'e', 'b' is not found".to_owned()));
    assert_eq!(stats.snapshot().failures, [0, 0, 0, 1, 0]);
    assert!(e.pinned().is_err());
    // Pinned before the removal.
    let (second, _, responses) = request(&held, "out", &[1, 2]);
    held.submit(second);
    models.model("a").respond();
    b.respond();
    assert_eq!(outputs(&responses).len(), 1);
}

#[test]
fn steps_inherit_request_parameters() {
    let (e, models) = ensemble("a:I=in>O=t b:I=t>O=out", &Setup::default());
    let (mut request, _, responses) = request(&e, "out", &[1, 2]);
    request.sequence = RequestSequence { id: CorrelationId::Number(7), start: true, end: false };
    (request.priority, request.timeout_us, request.deadline_ns) = (2, 30, u64::MAX);
    request.parameters = vec![("k".to_owned(), ParameterValue::Int(1))];
    let (sequence, parameters) = (request.sequence.clone(), request.parameters.clone());
    e.submit(request);
    for name in ["a", "b"] {
        let step = models.model(name).take();
        assert_eq!((step.id.as_str(), &step.sequence), ("r", &sequence));
        assert_eq!((step.priority, step.timeout_us, step.deadline_ns), (2, 30, u64::MAX));
        assert_eq!(step.parameters, parameters);
        models.model(name).submit_again(step);
        models.model(name).respond();
    }
    assert_eq!(outputs(&responses).len(), 1);
}

#[test]
fn step_with_other_than_one_response_is_an_error() {
    for (count, text) in [
        (0, "in ensemble 'e', expected a single response, got 0"),
        (2, "in ensemble 'e', expected a single response, got 2"),
    ] {
        let (e, models) = ensemble("a:I=in>O=out", &Setup::default());
        let (request, _, responses) = request(&e, "out", &[1, 2]);
        e.submit(request);
        let step = models.model("a").take();
        for _ in 0..count {
            step.responder.send(InferResponse::default()).unwrap();
        }
        step.responder.finish(Ok(None)).unwrap();
        assert_eq!(error(&responses).1, text);
    }
    let (e, models) = ensemble("a:I=in>O=out", &Setup::default());
    let (request, _, responses) = request(&e, "out", &[1, 2]);
    e.submit(request);
    drop(models.model("a").take());
    assert!(error(&responses).1.contains("dropped without a response"));
}

#[test]
fn concurrent_steps_complete_once() {
    let steps = "a:I=in>O=t b:I=t>O=u c:I=t>O=v d:I=u,J=v>O=out";
    let (e, models) = ensemble(steps, &Setup::default());
    let all: Vec<RecordedResponses> = (0..100)
        .map(|_| {
            let (request, _, responses) = request(&e, "out", &[1, 2]);
            e.submit(request);
            responses
        })
        .collect();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let model = models.model(name);
            scope.spawn(move || {
                for _ in 0..100 {
                    while model.waiting() == 0 {
                        std::thread::yield_now();
                    }
                    model.respond();
                }
            });
        }
    });
    assert!(all.iter().all(|responses| outputs(responses).len() == 1));
}
