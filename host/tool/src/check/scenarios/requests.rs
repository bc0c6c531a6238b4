//! Requests: valid ones, empty and invalid ones; layouts of inputs and handling of outputs.

use crate::check::element::first_difference;
use crate::check::execute::{ExecutedBatch, execute_batch, execute_one};
use crate::check::findings::count_breaches;
use crate::check::kit::Kit;
use crate::check::model::{ModelPlan, TYPES};
use crate::check::verdict::ScenarioVerdict;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_testkit::{self as testkit, Instance, Layout, Request, Response};

pub fn single_request(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    match kit.with_instance(|instance| repeated(&plan, instance)).and_then(|r| r) {
        Err(why) => ScenarioVerdict::Broken(format!("with {}: {why}", plan.label)),
        Ok(reference) => {
            kit.reference = reference;
            ScenarioVerdict::Kept(format!("with {}", plan.label))
        }
    }
}

/// The response to the first request, if equal requests get equal responses.
fn repeated(plan: &ModelPlan, instance: &Instance) -> Result<Option<Response>, String> {
    // Two requests, each executed twice, and the first once more.
    let mut responses = Vec::new();
    for seed in [0, 0, 1, 1, 0, 0] {
        responses.push(execute_one(instance, plan.request(1, 3, seed), "").only()?);
    }
    let differ = |a: usize, b: usize| first_difference(&responses[a], &responses[b]);
    let steady = [(0, 1), (2, 3), (0, 4), (0, 5)].iter().all(|(a, b)| differ(*a, *b).is_none());
    if steady {
        return Ok(responses.into_iter().next());
    }
    // The third response is that to the request before it, and so is the fifth.
    let late = differ(1, 2).is_none() && differ(3, 4).is_none() && differ(1, 5).is_none();
    match differ(2, 3).filter(|_| late) {
        Some(difference) => Err(format!(
            "the response to a request repeats that to the request before it: sent once more, {difference}"
        )),
        None => Ok(None),
    }
}

pub fn empty_request(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) if !plan.has_variable_dims() => {
            return ScenarioVerdict::NotApplicable("no input has a variable dimension".to_owned());
        }
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    // Frameworks differ in what they do with empty tensors, so a refusal is as good as a response.
    let request = plan.request(1, 0, 0).unchecked();
    match kit.with_instance(|instance| execute_one(instance, request, "without elements")) {
        Err(why) => ScenarioVerdict::Broken(why),
        Ok(executed) => match finished(&executed) {
            Err(why) => ScenarioVerdict::Broken(why),
            Ok(note) => ScenarioVerdict::Kept(note),
        },
    }
}

/// A request leads to a response or to an error with a text. Returns which.
fn finished(executed: &ExecutedBatch) -> Result<String, String> {
    match executed.outcomes.first().map(|outcome| &outcome.result) {
        None => Err(executed.fault(0, "out of memory")),
        Some(Ok(())) => Ok("responded".to_owned()),
        Some(Err(e)) if e.text.trim().is_empty() => {
            Err(executed.fault(0, "refused with an error without a text"))
        }
        Some(Err(e)) => Ok(format!("refused: {}", e.text)),
    }
}

pub fn data_types(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) if !plan.own => {
            return ScenarioVerdict::NotApplicable("--model determines the data types".to_owned());
        }
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let mut served = Vec::new();
    for dtype in TYPES {
        let Some(other) = plan.retyped(&kit.platforms, dtype) else { continue };
        let request = other.request(1, 3, 0).unchecked();
        let what = format!("of type {dtype}");
        match kit.with_plan(&other, |instance| execute_one(instance, request, &what)) {
            Err(text) if text.trim().is_empty() => {
                let text =
                    format!("a model of type {dtype} is refused with an error without a text");
                return ScenarioVerdict::Broken(text);
            }
            Err(_) => {}
            Ok(executed) => match finished(&executed) {
                Err(why) => return ScenarioVerdict::Broken(why),
                Ok(_) if executed.response(0).is_ok() => served.push(*dtype),
                Ok(_) => {}
            },
        }
    }
    ScenarioVerdict::Kept(format!("serves {}", served.join(", ")))
}

pub fn misfit_requests(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) if plan.signature.inputs.is_empty() => {
            return ScenarioVerdict::NotApplicable("the model has no inputs".to_owned());
        }
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let valid = || plan.request(1, 3, 0).unchecked();
    let mut wrong_type = valid();
    let input = &mut wrong_type.inputs[0];
    let elements = trtserver_request::tensor::element_count(&input.shape).unwrap_or(0);
    let (dtype, size) =
        if input.dtype == dtype::INT16 { (dtype::UINT8, 1) } else { (dtype::INT16, 2) };
    (input.dtype, input.parts) = (dtype, vec![vec![1; elements * size]]);
    let mut wrong_shape = valid();
    let input = &mut wrong_shape.inputs[0];
    input.shape.push(2);
    input.parts = vec![input.parts.concat().repeat(2)];
    let mut missing = valid();
    missing.inputs.remove(0);
    let name = &plan.signature.inputs[0].name;
    let invalid = [
        (format!("whose input '{name}' has a wrong data type"), wrong_type),
        (format!("whose input '{name}' has a wrong shape"), wrong_shape),
        (format!("without input '{name}'"), missing),
    ];
    let result = kit.with_instance(|instance| {
        for (what, request) in invalid {
            finished(&execute_one(instance, request, &what))?;
        }
        execute_one(instance, plan.request(1, 3, 0), "after invalid ones").only().map(drop)
    });
    ScenarioVerdict::from_result(result.and_then(|r| r))
}

pub fn protected_inputs(kit: &mut Kit) -> ScenarioVerdict {
    with_layouts(kit, &[Layout::Protected])
}

pub fn aligned_inputs(kit: &mut Kit) -> ScenarioVerdict {
    with_layouts(kit, &[Layout::Unaligned, Layout::Parts])
}

/// The layout of inputs must not change the response. Inputs in parts may be refused.
fn with_layouts(kit: &mut Kit, layouts: &[Layout]) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let reference = kit.reference.clone();
    let result = kit.with_instance(|instance| {
        for layout in layouts {
            let executed = execute_batch(instance, &[plan.request(1, 3, 0)], *layout, "");
            let response = match executed.response(0) {
                Ok(response) => response,
                Err(_) if *layout == Layout::Parts => continue,
                Err(e) => return Err(e),
            };
            if let Some(difference) = reference.as_ref().and_then(|r| first_difference(r, response))
            {
                return Err(executed.fault(0, format!("{difference}, as from ordinary inputs")));
            }
        }
        Ok(())
    });
    ScenarioVerdict::from_result(result.and_then(|r| r))
}

pub fn not_requested(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let outputs = plan.signature.outputs.iter().map(|output| output.name.to_string());
    let mut choices: Vec<Vec<String>> = vec![Vec::new()];
    if outputs.len() > 1 {
        choices.extend(outputs.map(|name| vec![name]));
    }
    let result = kit.with_instance(|instance| {
        for requested_outputs in choices {
            let what = match requested_outputs.first() {
                None => "for no output".to_owned(),
                Some(name) => format!("for output '{name}' alone"),
            };
            let none = requested_outputs.is_empty();
            let request = Request { requested_outputs, ..plan.request(1, 3, 0) };
            let executed = execute_one(instance, request, &what);
            finished(&executed)?;
            if !none {
                executed.response(0)?;
            }
        }
        Ok(())
    });
    ScenarioVerdict::from_result(result.and_then(|r| r))
}

/// Adopted memory is released after everything is closed.
pub fn adopted_outputs(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let before = testkit::counts().adopted;
    testkit::hold_releases(true);
    let request = plan.request(1, 3, 0);
    if let Err(why) =
        kit.with_instance(|instance| execute_one(instance, request, "").only()).and_then(|r| r)
    {
        return ScenarioVerdict::Broken(why);
    }
    testkit::hold_releases(false);
    if testkit::counts().adopted == before {
        return ScenarioVerdict::NotApplicable(
            "the backend passes on no memory of its own".to_owned(),
        );
    }
    ScenarioVerdict::Kept("released after the close".to_owned())
}

pub fn output_memory(kit: &mut Kit) -> ScenarioVerdict {
    const REQUESTS: usize = 20;
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let result = kit.with_instance(|instance| {
        let run =
            |n: usize| (0..n).for_each(|_| drop(execute_one(instance, plan.request(1, 3, 0), "")));
        run(2);
        let before = testkit::counts().allocations;
        run(REQUESTS);
        (before, testkit::counts().allocations)
    });
    match result {
        Err(why) => ScenarioVerdict::Broken(why),
        Ok((before, after)) if after >= before + REQUESTS => ScenarioVerdict::Broken(format!(
            "{} more blocks of memory_alloc after {REQUESTS} requests",
            after - before
        )),
        Ok(_) if testkit::counts().allocated == 0 => {
            ScenarioVerdict::NotApplicable("the backend calls no memory_alloc".to_owned())
        }
        Ok(_) if count_breaches("host.memory") > 0 => {
            ScenarioVerdict::Broken("see above".to_owned())
        }
        Ok(_) => ScenarioVerdict::kept(),
    }
}
