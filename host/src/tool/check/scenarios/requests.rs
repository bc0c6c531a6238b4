//! Requests: valid ones, batches, empty and invalid ones; layouts of inputs and handling of outputs.

use crate::request::DType;
use crate::tool::check::findings::breaches;
use crate::tool::check::kit::Kit;
use crate::tool::check::model::{Plan, TYPES, same};
use crate::tool::check::verdict::Verdict;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{
    self as testkit, Failure, Instance, InstanceSpec, Layout, Outcome, Request, Response,
};

pub(super) fn text(failure: Failure) -> String {
    failure.text
}

/// Opens everything, runs `work` on an instance of the model, closes everything.
pub(super) fn with_instance<T>(
    kit: &mut Kit,
    work: impl FnOnce(&Instance) -> T,
) -> Result<T, String> {
    let plan = kit.plan()?;
    with_plan(kit, &plan, work)
}

fn with_plan<T>(kit: &Kit, plan: &Plan, work: impl FnOnce(&Instance) -> T) -> Result<T, String> {
    let model = kit.open().and_then(|backend| backend.open_model(&plan.spec())).map_err(text)?;
    let instance = model.open_instance(&InstanceSpec::default()).map_err(text)?;
    Ok(work(&instance))
}

fn one(instance: &Instance, request: Request, layout: Layout) -> Result<Outcome, String> {
    let outcome = instance.execute_with(&[request], layout, |_| {}).pop();
    outcome.ok_or_else(|| "out of memory".to_owned())
}

/// The name of an output that differs between two responses.
pub(super) fn differs(plan: &Plan, a: &Response, b: &Response) -> Option<String> {
    let dtype = |name: &str| plan.signature.output(name).map(|i| plan.signature.outputs[i].dtype);
    let different = a.outputs.iter().find(|o| {
        let dtype = dtype(&o.name).unwrap_or(DType::Uint8);
        b.output(&o.name).is_none_or(|p| p.shape != o.shape || !same(dtype, &o.data, &p.data))
    });
    different.map(|o| o.name.clone())
}

/// The model to check with, or why the scenario does not apply.
fn plan(kit: &mut Kit) -> Result<Plan, Verdict> {
    kit.plan().map_err(Verdict::NotApplicable)
}

pub fn single(kit: &mut Kit) -> Verdict {
    let plan = match plan(kit) {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let found = with_instance(kit, |instance| {
        let first = one(instance, plan.request(1, 3, 0), Layout::Ordinary)?;
        first.response()?;
        let second = one(instance, plan.request(1, 3, 0), Layout::Ordinary)?;
        second.response()?;
        Ok((first, second))
    });
    match found.and_then(|r: Result<_, String>| r) {
        Err(why) => Verdict::Broken(format!("with {}: {why}", plan.label)),
        Ok((first, second)) => {
            let steady = matches!((first.response(), second.response()), (Ok(a), Ok(b)) if differs(&plan, a, b).is_none());
            kit.reference = steady.then_some(first);
            Verdict::Kept(format!("with {}", plan.label))
        }
    }
}

pub fn batch(kit: &mut Kit) -> Verdict {
    let plan = match plan(kit) {
        Ok(plan) if !plan.batches() || plan.signature.max_batch_size < 2 => {
            return Verdict::NotApplicable("the model takes one request at a time".to_owned());
        }
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let most = plan.signature.max_batch_size;
    let rows: Vec<u32> = if most >= 5 { vec![2, 1, 2] } else { vec![1; most.min(3) as usize] };
    let steady = kit.reference.is_some();
    let result = with_instance(kit, |instance| {
        let requests = rows.iter().enumerate().map(|(seed, n)| plan.request(*n, 3, seed));
        let requests: Vec<Request> = requests.collect();
        let together = instance.execute(&requests);
        for (at, (request, outcome)) in requests.into_iter().zip(&together).enumerate() {
            let label = format!("request {} of {}", at + 1, rows.len());
            let response = outcome.response().map_err(|e| format!("{label}: {e}"))?;
            if steady {
                let alone = one(instance, request, Layout::Ordinary)?;
                let alone = alone.response().map_err(|e| format!("{label}, alone: {e}"))?;
                if let Some(name) = differs(&plan, alone, response) {
                    return Err(format!(
                        "'{name}' of {label} differs from that of the request alone"
                    ));
                }
            }
        }
        Ok(())
    });
    Verdict::of(result.and_then(|r| r))
}

pub fn empty(kit: &mut Kit) -> Verdict {
    let plan = match plan(kit) {
        Ok(plan) if !plan.has_variable_dims() => {
            return Verdict::NotApplicable("no input has a variable dimension".to_owned());
        }
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    // Frameworks differ in what they do with empty tensors, so a refusal is as good as a response.
    let request = plan.request(1, 0, 0).unchecked();
    let result = with_instance(kit, |instance| one(instance, request, Layout::Ordinary));
    match result.and_then(|r| r) {
        Err(why) => Verdict::Broken(why),
        Ok(outcome) => finished(&outcome),
    }
}

/// Any response, or an error with a text.
fn finished(outcome: &Outcome) -> Verdict {
    match &outcome.result {
        Ok(()) => Verdict::Kept("responded".to_owned()),
        Err(e) if e.text.trim().is_empty() => {
            Verdict::Broken("refused with an error without a text".to_owned())
        }
        Err(e) => Verdict::Kept(format!("refused: {}", e.text)),
    }
}

pub fn types(kit: &mut Kit) -> Verdict {
    let plan = match plan(kit) {
        Ok(plan) if !plan.own => {
            return Verdict::NotApplicable("--model determines the data types".to_owned());
        }
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let mut served = Vec::new();
    for dtype in TYPES {
        let Some(other) = plan.retyped(&kit.platforms, dtype) else { continue };
        let request = other.request(1, 3, 0).unchecked();
        let outcome = with_plan(kit, &other, |instance| one(instance, request, Layout::Ordinary));
        match outcome {
            Err(text) if text.trim().is_empty() => {
                let text = format!("{dtype} is refused with an error without a text");
                return Verdict::Broken(text);
            }
            Err(_) => {}
            Ok(Err(text)) => return Verdict::Broken(format!("{dtype}: {text}")),
            Ok(Ok(outcome)) => match finished(&outcome) {
                Verdict::Broken(why) => return Verdict::Broken(format!("{dtype}: {why}")),
                _ if outcome.response().is_ok() => served.push(*dtype),
                _ => {}
            },
        }
    }
    Verdict::Kept(format!("serves {}", served.join(", ")))
}

pub fn misfit(kit: &mut Kit) -> Verdict {
    let plan = match plan(kit) {
        Ok(plan) if plan.signature.inputs.is_empty() => {
            return Verdict::NotApplicable("the model has no inputs".to_owned());
        }
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let valid = || plan.request(1, 3, 0).unchecked();
    let mut wrong_type = valid();
    let input = &mut wrong_type.inputs[0];
    let elements = crate::request::tensor::element_count(&input.shape).unwrap_or(0);
    let (dtype, size) =
        if input.dtype == dtype::INT16 { (dtype::UINT8, 1) } else { (dtype::INT16, 2) };
    (input.dtype, input.parts) = (dtype, vec![vec![1; elements * size]]);
    let mut wrong_shape = valid();
    let input = &mut wrong_shape.inputs[0];
    input.shape.push(2);
    input.parts = vec![input.parts.concat().repeat(2)];
    let mut missing = valid();
    missing.inputs.remove(0);
    let invalid = [
        ("a wrong data type", wrong_type),
        ("a wrong shape", wrong_shape),
        ("a missing input", missing),
    ];
    let result = with_instance(kit, |instance| {
        for (what, request) in invalid {
            let outcome = one(instance, request, Layout::Ordinary)?;
            if let Verdict::Broken(why) = finished(&outcome) {
                return Err(format!("{what}: {why}"));
            }
        }
        let after = one(instance, plan.request(1, 3, 0), Layout::Ordinary)?;
        after.response().map(|_| ()).map_err(|e| format!("a valid request afterwards: {e}"))
    });
    Verdict::of(result.and_then(|r| r))
}

pub fn protected(kit: &mut Kit) -> Verdict {
    with_layouts(kit, &[Layout::Protected])
}

pub fn aligned(kit: &mut Kit) -> Verdict {
    with_layouts(kit, &[Layout::Unaligned, Layout::Parts])
}

/// The layout of inputs must not change the response. Inputs in parts may be refused.
fn with_layouts(kit: &mut Kit, layouts: &[Layout]) -> Verdict {
    let plan = match plan(kit) {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let reference = kit.reference.clone();
    let result = with_instance(kit, |instance| {
        for layout in layouts {
            let outcome = one(instance, plan.request(1, 3, 0), *layout)?;
            let response = match outcome.response() {
                Ok(response) => response,
                Err(_) if *layout == Layout::Parts => continue,
                Err(e) => return Err(e),
            };
            let reference = reference.as_ref().and_then(|u| u.response().ok());
            if let Some(name) = reference.and_then(|u| differs(&plan, u, response)) {
                let what = match layout {
                    Layout::Parts => "is in two parts",
                    Layout::Unaligned => "has the least alignment",
                    _ => "is read-only",
                };
                return Err(format!("output '{name}' differs when an input {what}"));
            }
        }
        Ok(())
    });
    Verdict::of(result.and_then(|r| r))
}

pub fn not_requested(kit: &mut Kit) -> Verdict {
    let plan = match plan(kit) {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let outputs = plan.signature.outputs.iter().map(|output| output.name.to_string());
    let mut choices: Vec<Vec<String>> = vec![Vec::new()];
    if outputs.len() > 1 {
        choices.extend(outputs.map(|name| vec![name]));
    }
    let result = with_instance(kit, |instance| {
        for requested_outputs in choices {
            let none = requested_outputs.is_empty();
            let request = Request { requested_outputs, ..plan.request(1, 3, 0) };
            let outcome = one(instance, request, Layout::Ordinary)?;
            match finished(&outcome) {
                Verdict::Broken(why) => return Err(why),
                _ if none => {}
                _ => drop(outcome.response()?),
            }
        }
        Ok(())
    });
    Verdict::of(result.and_then(|r| r))
}

/// Adopted memory is released after everything is closed.
pub fn adopted(kit: &mut Kit) -> Verdict {
    let plan = match plan(kit) {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let before = testkit::counts().adopted;
    testkit::hold_releases(true);
    let request = plan.request(1, 3, 0);
    let result = with_instance(kit, |instance| one(instance, request, Layout::Ordinary));
    if let Err(why) = result.and_then(|r| r?.response().map(|_| ())) {
        return Verdict::Broken(why);
    }
    testkit::hold_releases(false);
    if testkit::counts().adopted == before {
        return Verdict::NotApplicable("the backend passes on no memory of its own".to_owned());
    }
    Verdict::Kept("released after the close".to_owned())
}

pub fn memory(kit: &mut Kit) -> Verdict {
    const REQUESTS: usize = 20;
    let plan = match plan(kit) {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let result = with_instance(kit, |instance| {
        let run = |n: usize| {
            (0..n)
                .try_for_each(|_| one(instance, plan.request(1, 3, 0), Layout::Ordinary).map(drop))
        };
        run(2)?;
        let before = testkit::counts().allocations;
        run(REQUESTS)?;
        Ok((before, testkit::counts().allocations))
    });
    match result.and_then(|r: Result<_, String>| r) {
        Err(why) => Verdict::Broken(why),
        Ok((before, after)) if after >= before + REQUESTS => Verdict::Broken(format!(
            "{} more blocks of memory_alloc after {REQUESTS} requests",
            after - before
        )),
        Ok(_) if testkit::counts().allocated == 0 => {
            Verdict::NotApplicable("the backend calls no memory_alloc".to_owned())
        }
        Ok(_) if breaches("host.memory") > 0 => Verdict::Broken("see above".to_owned()),
        Ok(_) => Verdict::kept(),
    }
}
