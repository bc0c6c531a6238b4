//! Calls: good ones, several at once, empty ones, wrong ones; where inputs lie and what becomes of outputs.

use super::Verdict;
use crate::request::DType;
use crate::tool::check::bench::{CallSpec, Instance, Lay, Outcome};
use crate::tool::check::child::breaches;
use crate::tool::check::host::{Answer, HOST};
use crate::tool::check::kit::Kit;
use crate::tool::check::model::{Plan, TYPES, same};
use trtserver_plugin_api::abi::types::dtype;

/// Runs `work` on an instance of the model, with everything closed behind it.
pub(super) fn with_instance<T: Send>(
    kit: &mut Kit,
    work: impl FnOnce(&mut Instance<'_>) -> T + Send,
) -> Result<T, String> {
    let plan = kit.plan()?;
    with_plan(kit, &plan, work)
}

fn with_plan<T: Send>(
    kit: &Kit,
    plan: &Plan,
    work: impl FnOnce(&mut Instance<'_>) -> T + Send,
) -> Result<T, String> {
    let plugin = kit.open().map_err(|e| e.text)?;
    let model = plugin.model(plan, 1, |_| {}).map_err(|e| e.text)?;
    model.on_instance(0, work).map_err(|e| e.text)
}

fn verdict(result: Result<Verdict, String>) -> Verdict {
    result.unwrap_or_else(Verdict::Broken)
}

fn one(instance: &mut Instance<'_>, call: CallSpec, lay: Lay) -> Result<Outcome, String> {
    instance.run(&[call], lay, None).pop().ok_or_else(|| "the call was lost".to_owned())
}

/// Whether two answers say the same; the name of the output that does not.
pub(super) fn differs(plan: &Plan, a: &Answer, b: &Answer) -> Option<String> {
    let spec = |name: &str| plan.signature.output(name).map(|i| plan.signature.outputs[i].dtype);
    let other = |name: &str| b.iter().find(|o| o.name == name);
    let unlike = a.iter().find(|o| {
        let dtype = spec(&o.name).unwrap_or(DType::Uint8);
        other(&o.name).is_none_or(|p| p.shape != o.shape || !same(dtype, &o.data, &p.data))
    });
    unlike.map(|o| o.name.clone())
}

pub fn single(kit: &mut Kit) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    let found = with_instance(kit, |instance| {
        let call = || instance_call(&plan, 1, 0);
        let first = one(instance, call(), Lay::Ordinary)?;
        first.answer()?;
        let again = one(instance, call(), Lay::Ordinary)?;
        again.answer()?;
        Ok((first, again))
    });
    match found.and_then(|r: Result<_, String>| r) {
        Err(why) => Verdict::Broken(format!("with {}: {why}", plan.label)),
        Ok((first, again)) => {
            let steady = matches!((first.answer(), again.answer()), (Ok(a), Ok(b)) if differs(&plan, a, b).is_none());
            kit.usual = steady.then_some(first);
            Verdict::Kept(format!("with {}", plan.label))
        }
    }
}

fn instance_call(plan: &Plan, rows: u32, seed: usize) -> CallSpec {
    plan.call(rows, 3, seed)
}

pub fn batch(kit: &mut Kit) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) if !plan.batches() || plan.signature.max_batch_size < 2 => {
            return Verdict::NotApplicable("the model takes one call at a time".to_owned());
        }
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    let most = plan.signature.max_batch_size;
    let rows: Vec<u32> = if most >= 5 { vec![2, 1, 2] } else { vec![1; most.min(3) as usize] };
    let steady = kit.usual.is_some();
    let result = with_instance(kit, |instance| {
        let calls: Vec<CallSpec> =
            rows.iter().enumerate().map(|(seed, n)| instance_call(&plan, *n, seed)).collect();
        let together = instance.execute(&calls);
        for (at, (call, outcome)) in calls.into_iter().zip(&together).enumerate() {
            let label = format!("call {} of {}", at + 1, rows.len());
            let answer = outcome.answer().map_err(|e| format!("{label}: {e}"))?;
            if steady {
                let alone = one(instance, call, Lay::Ordinary)?;
                let alone = alone.answer().map_err(|e| format!("{label}, alone: {e}"))?;
                if let Some(name) = differs(&plan, alone, answer) {
                    return Err(format!("{label} gets another '{name}' in a batch than alone"));
                }
            }
        }
        Ok(())
    });
    Verdict::of(result.and_then(|r| r))
}

pub fn empty(kit: &mut Kit) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) if !plan.has_variable_dims() => {
            return Verdict::NotApplicable("no input has a variable dimension".to_owned());
        }
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    // Frameworks have their own ideas of what becomes of nothing; refused it may be as well as answered.
    let call = CallSpec { lenient: true, ..plan.call(1, 0, 0) };
    let result = with_instance(kit, |instance| one(instance, call, Lay::Ordinary));
    match result.and_then(|r| r) {
        Err(why) => Verdict::Broken(why),
        Ok(outcome) => in_words(&outcome),
    }
}

/// An answer, or an error that says something.
fn in_words(outcome: &Outcome) -> Verdict {
    match &outcome.end {
        Ok(()) => Verdict::Kept("answered".to_owned()),
        Err(e) if e.text.trim().is_empty() => Verdict::Broken("refused without a word".to_owned()),
        Err(e) => Verdict::Kept(format!("refused: {}", e.text)),
    }
}

pub fn types(kit: &mut Kit) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) if !plan.own => {
            return Verdict::NotApplicable(
                "the model given by --model has the types that it has".to_owned(),
            );
        }
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    let mut served = Vec::new();
    for dtype in TYPES {
        let Some(other) = plan.retyped(&kit.served, dtype) else { continue };
        let mut call = other.call(1, 3, 0);
        call.lenient = true;
        let outcome = with_plan(kit, &other, |instance| one(instance, call, Lay::Ordinary));
        match outcome {
            Err(text) if text.trim().is_empty() => {
                return Verdict::Broken(format!("{dtype} is refused without a word"));
            }
            Err(_) => {}
            Ok(Err(text)) => return Verdict::Broken(format!("{dtype}: {text}")),
            Ok(Ok(outcome)) => match in_words(&outcome) {
                Verdict::Broken(why) => return Verdict::Broken(format!("{dtype}: {why}")),
                _ if outcome.answer().is_ok() => served.push(*dtype),
                _ => {}
            },
        }
    }
    Verdict::Kept(format!("serves {}", served.join(", ")))
}

pub fn misfit(kit: &mut Kit) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) if plan.signature.inputs.is_empty() => {
            return Verdict::NotApplicable("the model has no inputs".to_owned());
        }
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    let mut wrong = Vec::new();
    let good = || CallSpec { lenient: true, ..instance_call(&plan, 1, 0) };
    let mut call = good();
    call.inputs[0].dtype =
        if call.inputs[0].dtype == dtype::INT16 { dtype::UINT8 } else { dtype::INT16 };
    let elements = crate::request::tensor::element_count(&call.inputs[0].shape).unwrap_or(0);
    let size = if call.inputs[0].dtype == dtype::INT16 { 2 } else { 1 };
    call.inputs[0].data = vec![1; elements * size];
    wrong.push(("a wrong data type", call));
    let mut call = good();
    call.inputs[0].shape.push(2);
    let data = call.inputs[0].data.clone();
    call.inputs[0].data.extend(data);
    wrong.push(("a wrong shape", call));
    let mut call = good();
    call.inputs.remove(0);
    wrong.push(("a missing input", call));
    let result = with_instance(kit, |instance| {
        for (what, call) in wrong {
            let outcome = one(instance, call, Lay::Ordinary)?;
            if let Verdict::Broken(why) = in_words(&outcome) {
                return Err(format!("{what}: {why}"));
            }
        }
        // And it still works.
        let after = one(instance, instance_call(&plan, 1, 0), Lay::Ordinary)?;
        after.answer().map(|_| ()).map_err(|e| format!("afterwards a good call fails: {e}"))
    });
    Verdict::of(result.and_then(|r| r))
}

pub fn protected(kit: &mut Kit) -> Verdict {
    lain(kit, &[Lay::Protected])
}

pub fn aligned(kit: &mut Kit) -> Verdict {
    lain(kit, &[Lay::Skewed, Lay::Parts])
}

/// The usual call with its inputs elsewhere must have the usual answer. Parts may be refused.
fn lain(kit: &mut Kit, lays: &[Lay]) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    let usual = kit.usual.clone();
    let result = with_instance(kit, |instance| {
        for lay in lays {
            let outcome = one(instance, instance_call(&plan, 1, 0), *lay)?;
            let answer = match outcome.answer() {
                Ok(answer) => answer,
                Err(_) if *lay == Lay::Parts => continue,
                Err(e) => return Err(e),
            };
            let usual = usual.as_ref().and_then(|u| u.answer().ok());
            if let Some(name) = usual.and_then(|u| differs(&plan, u, answer)) {
                let what = match lay {
                    Lay::Parts => "lies in two parts",
                    Lay::Skewed => "is aligned no more than was asked for",
                    _ => "lies in memory that cannot be written",
                };
                return Err(format!("output '{name}' is another when its input {what}"));
            }
        }
        Ok(())
    });
    Verdict::of(result.and_then(|r| r))
}

pub fn unwanted(kit: &mut Kit) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    let n = plan.signature.outputs.len();
    let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
    if n > 1 {
        choices.extend((0..n).map(|i| vec![i]));
    }
    let result = with_instance(kit, |instance| {
        for wanted in choices {
            let none = wanted.is_empty();
            let call = CallSpec { wanted, ..instance_call(&plan, 1, 0) };
            let outcome = one(instance, call, Lay::Ordinary)?;
            match in_words(&outcome) {
                Verdict::Broken(why) => return Err(why),
                _ if none => {}
                _ => drop(outcome.answer()?),
            }
        }
        Ok(())
    });
    Verdict::of(result.and_then(|r| r))
}

/// Donated memory, held until everything is closed.
pub fn donated(kit: &mut Kit) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    let before = {
        let mut state = HOST.lock();
        state.hold_releases = true;
        state.donated
    };
    let result =
        with_instance(kit, |instance| one(instance, instance_call(&plan, 1, 0), Lay::Ordinary));
    if let Err(why) = result.and_then(|r| r?.answer().map(|_| ())) {
        return Verdict::Broken(why);
    }
    let (done, donated) = {
        let mut state = HOST.lock();
        state.hold_releases = false;
        (std::mem::take(&mut state.done), state.donated > before)
    };
    crate::tool::check::host::release(done);
    if !donated {
        return Verdict::NotApplicable("it donates no memory".to_owned());
    }
    verdict(Ok(Verdict::Kept("released after the close".to_owned())))
}

pub fn leases(kit: &mut Kit) -> Verdict {
    let plan = match kit.plan() {
        Ok(plan) => plan,
        Err(why) => return Verdict::NotApplicable(why),
    };
    const CALLS: usize = 20;
    let result = with_instance(kit, |instance| {
        let mut run = |n: usize| {
            (0..n).try_for_each(|_| {
                one(instance, instance_call(&plan, 1, 0), Lay::Ordinary).map(drop)
            })
        };
        let leases = || HOST.lock().leases.len();
        run(2)?;
        let before = leases();
        run(CALLS)?;
        Ok((before, leases()))
    });
    match result.and_then(|r: Result<_, String>| r) {
        Err(why) => Verdict::Broken(why),
        Ok((before, after)) if after >= before + CALLS => Verdict::Broken(format!(
            "after {CALLS} calls it holds {} more blocks of memory_alloc than before",
            after - before
        )),
        Ok(_) if HOST.lock().leased == 0 => {
            Verdict::NotApplicable("it takes no memory of the host".to_owned())
        }
        Ok(_) if breaches("host.leases") > 0 => Verdict::Broken("see above".to_owned()),
        Ok(_) => Verdict::kept(),
    }
}
