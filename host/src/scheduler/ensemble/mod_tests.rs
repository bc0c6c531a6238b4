//! Requests on their way through ensembles of models that a test answers by hand.

use super::testing::{Setup, answer, ensemble, request};
use crate::error::{Code, Error};
use crate::request::testing::RecordedResponses;
use crate::request::{CorrelationId, InferResponse, Parameter, Sequence};
use std::sync::Arc;

/// The one error that the caller was told.
fn error(told: &RecordedResponses) -> (Code, String) {
    let told = told.lock();
    assert_eq!(told.len(), 1, "{told:?}");
    let error = told[0].0.as_ref().unwrap_err();
    (error.code, error.message.clone())
}

/// Names and shapes of the outputs that the caller was told, once.
fn outputs(told: &RecordedResponses) -> Vec<(String, Vec<i64>)> {
    let told = told.lock();
    assert_eq!((told.len(), told[0].1), (1, true), "{told:?}");
    let response = told[0].0.as_ref().unwrap().as_ref().unwrap();
    response.outputs.iter().map(|o| (o.name.to_string(), o.shape.to_vec())).collect()
}

fn is_silent(told: &RecordedResponses) -> bool {
    told.lock().is_empty()
}

#[test]
fn a_chain_passes_tensors_by_reference() {
    let (e, world) = ensemble("b:I=t>O=out a:I=in>O=t", &Setup::default());
    let (request, stats, told) = request(&e, "out", &[1, 2]);
    let data = request.inputs[0].data.as_ptr();
    e.submit(request);
    assert_eq!(world.waiting("a b"), [1, 0]);
    world.model("a").answer();
    assert_eq!(world.waiting("a b"), [0, 1]);
    assert!(is_silent(&told));
    world.model("b").answer();
    assert_eq!(outputs(&told), [("out".to_owned(), vec![1, 2])]);
    let got = told.lock()[0].0.clone().unwrap().unwrap();
    assert_eq!(got.outputs[0].data.as_ptr(), data);
    let counters = stats.snapshot();
    let total = counters.total();
    assert_eq!((total.success.count, total.queue.count, total.compute_infer.count), (1, 1, 1));
    assert_eq!((counters.execution_count, counters.inference_count), (1, 1));
    assert_eq!(world.model("a").stats.snapshot().total().success.count, 1);
}

#[test]
fn a_diamond_waits_for_both_sides() {
    let steps = "a:I=in>O=t b:I=t>O=u c:I=t>O=v d:I=u,J=v>O=out,P=out2";
    for sides in [["b", "c"], ["c", "b"]] {
        let (e, world) = ensemble(steps, &Setup::default());
        let (request, _, told) = request(&e, "out2 out", &[3, 2]);
        e.submit(request);
        assert_eq!(world.waiting("a b c d"), [1, 0, 0, 0]);
        world.model("a").answer();
        assert_eq!(world.waiting("a b c d"), [0, 1, 1, 0]);
        world.model(sides[0]).answer();
        assert_eq!(world.waiting("d"), [0]);
        world.model(sides[1]).answer();
        let last = world.model("d").take();
        assert_eq!((last.inputs.len(), last.context().batch), (2, 3));
        assert!(is_silent(&told));
        let named = |name: &str| crate::request::OutputTensor {
            name: name.into(),
            dtype: crate::request::DType::Fp32,
            shape: [3, 2][..].into(),
            data: last.inputs[0].data.clone(),
        };
        let response = InferResponse {
            outputs: [named("O"), named("P")].into_iter().collect(),
            ..Default::default()
        };
        answer(&last, Ok(response));
        // As the caller asked.
        let shape = vec![3, 2];
        assert_eq!(outputs(&told), [("out2".to_owned(), shape.clone()), ("out".to_owned(), shape)]);
    }
}

#[test]
fn only_what_leads_to_the_answer_runs() {
    let steps = "a:I=in>O=t,P=u b:I=t>O=out,P=x c:I=u>O=out2 d:I=x>O=y";
    for (wanted, first, rest) in [
        ("out", &[0][..], [1, 0, 0]),
        ("out2", &[1], [0, 1, 0]),
        ("out out2", &[0, 1], [1, 1, 0]),
        // A v1 caller who asks for nothing has everything computed that he could have asked for.
        ("", &[0, 1], [1, 1, 0]),
    ] {
        let (e, world) = ensemble(steps, &Setup::default());
        let (request, _, told) = request(&e, wanted, &[1, 2]);
        e.submit(request);
        let asked: Vec<_> = {
            let first = world.model("a").take();
            let asked = first.context().outputs.iter().map(|w| w.index).collect();
            world.model("a").submit_again(first);
            asked
        };
        assert_eq!(asked, first, "{wanted}");
        world.model("a").answer();
        assert_eq!(world.waiting("b c d"), rest, "{wanted}");
        for name in ["b", "c"].into_iter().zip(rest).filter(|(_, n)| *n > 0).map(|(name, _)| name) {
            // Not the output that only an unneeded step reads.
            let model = world.model(name);
            let request = model.take();
            assert_eq!(request.context().outputs.len(), 1, "{wanted}");
            model.submit_again(request);
            model.answer();
        }
        assert_eq!(outputs(&told).len(), wanted.split_whitespace().count(), "{wanted}");
    }
}

#[test]
fn the_first_error_ends_it() {
    let (e, world) = ensemble("a:I=in>O=out b:I=in>O=out2", &Setup::default());
    let (request, stats, told) = request(&e, "out out2", &[1, 2]);
    e.submit(request);
    let [a, b] = ["a", "b"].map(|name| world.model(name).take());
    answer(&a, Err(Error::internal("no luck")));
    assert_eq!(error(&told), (Code::Internal, "in ensemble 'e', no luck".to_owned()));
    assert!(b.cancel_token().is_cancelled());
    answer(&b, Err(Error::internal("neither")));
    assert_eq!(error(&told).1, "in ensemble 'e', no luck");
    // OTHER, once.
    assert_eq!(stats.snapshot().failures, [0, 0, 0, 1]);
}

#[test]
fn a_step_that_refuses_at_once() {
    let setup = Setup { refusing: "b d", ..Setup::default() };
    // In the middle of several that start together, and later.
    for steps in [
        "a:I=in>O=out b:I=in>O=out2",
        "b:I=in>O=out2 a:I=in>O=out",
        "a:I=in>O=t d:I=t>O=out b:I=t>O=out2",
    ] {
        let (e, world) = ensemble(steps, &setup);
        let (request, _, told) = request(&e, "out out2", &[1, 2]);
        e.submit(request);
        if steps.contains('d') {
            world.model("a").answer();
        }
        let text = "in ensemble 'e', Exceeds maximum queue size".to_owned();
        assert_eq!(error(&told), (Code::Unavailable, text), "{steps}");
        if !steps.contains('d') && world.model("a").waiting() > 0 {
            assert!(world.model("a").take().cancel_token().is_cancelled());
        }
    }
}

#[test]
fn a_caller_who_goes_away_cancels_the_steps() {
    let (e, world) = ensemble("a:I=in>O=t b:I=in>O=u c:I=t,J=u>O=out", &Setup::default());
    let (request, stats, told) = request(&e, "out", &[1, 2]);
    let reply = Arc::clone(&request.responder);
    e.submit(request);
    reply.cancel_token.cancel();
    let [a, b] = ["a", "b"].map(|name| world.model(name).take());
    assert!(a.cancel_token().is_cancelled() && b.cancel_token().is_cancelled());
    answer(&a, Err(Error::new(Code::Cancelled, "stopped")));
    assert_eq!(error(&told), (Code::Cancelled, "in ensemble 'e', stopped".to_owned()));
    assert_eq!(stats.snapshot().failures, [0, 1, 0, 0]);
    drop(b);
    assert_eq!(world.waiting("c"), [0]);
}

#[test]
fn it_ends_between_steps_when_a_model_does_not_care() {
    let (e, world) = ensemble("a:I=in>O=t b:I=t>O=out", &Setup::default());
    let (first, _, told) = request(&e, "out", &[1, 2]);
    let reply = Arc::clone(&first.responder);
    e.submit(first);
    reply.cancel_token.cancel();
    world.model("a").answer();
    let text = "in ensemble 'e', request was cancelled".to_owned();
    assert_eq!(error(&told), (Code::Cancelled, text.clone()));
    assert_eq!(world.waiting("b"), [0]);
    // Gone before it began.
    let (late, _, told) = request(&e, "out", &[1, 2]);
    late.cancel_token().cancel();
    e.submit(late);
    assert_eq!(error(&told), (Code::Cancelled, text));
    assert_eq!(world.waiting("a"), [0]);
}

#[test]
fn batch_dimensions_come_and_go() {
    // Ensemble and models as (maximum batch, dims), the caller's shape, what the step sees, what the caller gets.
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
    for &(own, models, [given, seen, got]) in rows {
        let setup = Setup { ensemble: own, models, refusing: "" };
        let (e, world) = ensemble("a:I=in>O=t b:I=t>O=out", &setup);
        let (request, _, told) = request(&e, "out", given);
        e.submit(request);
        for name in ["a", "b"] {
            let request = world.model(name).take();
            assert_eq!(request.inputs[0].shape.as_slice(), seen, "{own:?} {models:?}");
            let batch = if models.0 > 0 { seen[0] } else { 1 };
            assert_eq!(i64::from(request.context().batch), batch, "{own:?} {models:?}");
            world.model(name).submit_again(request);
            world.model(name).answer();
        }
        assert_eq!(outputs(&told), [("out".to_owned(), got.to_vec())], "{own:?} {models:?}");
    }
}

#[test]
fn what_does_not_fit_is_found_on_the_way() {
    let setup = Setup { ensemble: (0, &[-1]), models: (0, &[2]), refusing: "" };
    let (e, _) = ensemble("a:I=in>O=out", &setup);
    let (first, _, told) = request(&e, "out", &[3]);
    e.submit(first);
    let text = "in ensemble 'e', [request id: r] unexpected shape for input 'I' for model 'a'. Expected [2], got [3]. ";
    assert_eq!(error(&told), (Code::InvalidArg, text.to_owned()));
    let setup = Setup { ensemble: (0, &[2]), models: (0, &[-1]), refusing: "" };
    let (e, world) = ensemble("a:I=in>O=out", &setup);
    let (second, _, told) = request(&e, "out", &[3]);
    e.submit(second);
    world.model("a").answer();
    let text = "in ensemble 'e', output 'out' for model 'e' has shape [3] but model configuration specifies shape [2]";
    assert_eq!(error(&told).1, text);
}

#[test]
fn rows_that_a_step_without_batches_adds() {
    let setup = Setup { ensemble: (8, &[2]), models: (0, &[-1, 2]), refusing: "" };
    let (e, world) = ensemble("a:I=in>O=out", &setup);
    let (request, _, told) = request(&e, "out", &[3, 2]);
    e.submit(request);
    let mut seen = world.model("a").take();
    seen.inputs[0].shape = [4, 2].into_iter().collect();
    world.model("a").submit_again(seen);
    world.model("a").answer();
    let text = "in ensemble 'e', output 'out' for model 'e' has shape [4,2], but the request has batch size 3";
    assert_eq!(error(&told).1, text);
}

#[test]
fn what_is_absent() {
    // An optional input of the ensemble, which the caller left out.
    let (e, world) = ensemble("a:I=in,J=in2>O=out", &Setup::default());
    let (first, _, told) = request(&e, "out", &[1, 2]);
    e.submit(first);
    world.model("a").answer();
    assert_eq!(outputs(&told).len(), 1);
    // An output that a model leaves out: its readers may do without it, or not.
    let deadlock = "in ensemble 'e', unexpected deadlock, at least one output is not set while no more ensemble \
                    steps can be made";
    for (steps, wanted) in [
        ("a:I=in>O=t b:I=in,J=t>O=out", Ok(())),
        ("a:I=in>O=t b:I=t>O=out", Err(deadlock)),
        ("a:I=in>O=out", Err(deadlock)),
    ] {
        let (e, world) = ensemble(steps, &Setup::default());
        let (request, stats, told) = request(&e, "out", &[1, 2]);
        e.submit(request);
        answer(&world.model("a").take(), Ok(InferResponse::default()));
        match wanted {
            Ok(()) => {
                world.model("b").answer();
                assert_eq!(outputs(&told).len(), 1, "{steps}");
            }
            Err(text) => {
                assert_eq!(error(&told).1, text, "{steps}");
                assert_eq!(stats.snapshot().failures, [0, 0, 0, 1]);
            }
        }
    }
}

#[test]
fn a_tensor_between_steps_may_be_an_output() {
    let (e, world) = ensemble("a:I=in>O=out b:I=out>O=out2", &Setup::default());
    let (request, _, told) = request(&e, "out2 out", &[1, 2]);
    e.submit(request);
    world.model("a").answer();
    world.model("b").answer();
    assert_eq!(outputs(&told).len(), 2);
}

#[test]
fn what_is_not_served_and_what_is_held() {
    let (e, world) = ensemble("a:I=in>O=t b:I=t>O=out", &Setup::default());
    let held = e.pinned().unwrap();
    let b = world.model("b");
    world.remove("b");
    let (first, stats, told) = request(&e, "out", &[1, 2]);
    e.submit(first);
    assert_eq!(error(&told), (Code::NotFound, "in ensemble 'e', 'b' is not found".to_owned()));
    assert_eq!(stats.snapshot().failures, [0, 0, 0, 1]);
    assert!(e.pinned().is_err());
    // Whoever pinned it in time is served.
    let (second, _, told) = request(&held, "out", &[1, 2]);
    held.submit(second);
    world.model("a").answer();
    b.answer();
    assert_eq!(outputs(&told).len(), 1);
}

#[test]
fn steps_are_asked_as_the_caller_asked() {
    let (e, world) = ensemble("a:I=in>O=t b:I=t>O=out", &Setup::default());
    let (mut request, _, told) = request(&e, "out", &[1, 2]);
    request.sequence = Sequence { id: CorrelationId::Number(7), start: true, end: false };
    (request.priority, request.timeout_us, request.deadline_ns) = (2, 30, u64::MAX);
    request.parameters = vec![("k".to_owned(), Parameter::Int(1))];
    let (sequence, parameters) = (request.sequence.clone(), request.parameters.clone());
    e.submit(request);
    for name in ["a", "b"] {
        let step = world.model(name).take();
        assert_eq!((step.id.as_str(), &step.sequence), ("r", &sequence));
        assert_eq!((step.priority, step.timeout_us, step.deadline_ns), (2, 30, u64::MAX));
        assert_eq!(step.parameters, parameters);
        world.model(name).submit_again(step);
        world.model(name).answer();
    }
    assert_eq!(outputs(&told).len(), 1);
}

#[test]
fn a_step_answers_once() {
    for (answers, text) in [
        (0, "in ensemble 'e', expected a single response, got 0"),
        (2, "in ensemble 'e', expected a single response, got 2"),
    ] {
        let (e, world) = ensemble("a:I=in>O=out", &Setup::default());
        let (request, _, told) = request(&e, "out", &[1, 2]);
        e.submit(request);
        let step = world.model("a").take();
        for _ in 0..answers {
            step.responder.send(InferResponse::default()).unwrap();
        }
        step.responder.finish(Ok(None)).unwrap();
        assert_eq!(error(&told).1, text);
    }
    let (e, world) = ensemble("a:I=in>O=out", &Setup::default());
    let (request, _, told) = request(&e, "out", &[1, 2]);
    e.submit(request);
    drop(world.model("a").take());
    assert!(error(&told).1.contains("dropped without a response"));
}

#[test]
fn many_threads() {
    let steps = "a:I=in>O=t b:I=t>O=u c:I=t>O=v d:I=u,J=v>O=out";
    let (e, world) = ensemble(steps, &Setup::default());
    let all: Vec<RecordedResponses> = (0..100)
        .map(|_| {
            let (request, _, told) = request(&e, "out", &[1, 2]);
            e.submit(request);
            told
        })
        .collect();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let model = world.model(name);
            scope.spawn(move || {
                for _ in 0..100 {
                    while model.waiting() == 0 {
                        std::thread::yield_now();
                    }
                    model.answer();
                }
            });
        }
    });
    assert!(all.iter().all(|told| outputs(told).len() == 1));
}
