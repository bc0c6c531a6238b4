//! Batches: requests that are executed together get the same responses as alone.

use crate::check::element::first_difference;
use crate::check::execute::{ExecutedBatch, execute_batch, execute_one};
use crate::check::kit::Kit;
use crate::check::model::ModelPlan;
use crate::check::search::Batching;
use crate::check::verdict::ScenarioVerdict;
use trtserver_plugin_testkit::{Instance, Layout, Output, Response};

/// Different rows. Prime, so that their order differs from batch to batch.
const ROWS: usize = 11;
/// Bytes of the inputs of a batch, at most; a model with larger rows is checked with fewer of them.
const MAX_BYTES: usize = 64 << 20;

pub fn batched_requests(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    match &kit.batching {
        Batching::Served => {}
        Batching::Refused(why) => return ScenarioVerdict::Untested(why.clone()),
        Batching::Fails(why) => return ScenarioVerdict::Broken(why.clone()),
    }
    if kit.reference.is_none() {
        let why = "equal requests get different responses, so that rows cannot be compared";
        return ScenarioVerdict::Untested(why.to_owned());
    }
    let declared = plan.signature.max_batch_size as usize;
    let row: usize = plan.request(1, 3, 0).inputs.iter().flat_map(|i| &i.parts).map(Vec::len).sum();
    let most = declared.min((MAX_BYTES / row.max(1)).max(2));
    match kit.with_instance(|instance| compare(&plan, instance, most)).and_then(|r| r) {
        Err(why) => ScenarioVerdict::Broken(why),
        Ok(false) => ScenarioVerdict::Untested(
            "responses do not depend on the inputs, so that rows cannot be told apart".to_owned(),
        ),
        Ok(true) if most < declared => ScenarioVerdict::Kept(format!(
            "up to {most} of {declared} rows, which have {row} bytes each"
        )),
        Ok(true) => ScenarioVerdict::Kept(format!("up to {most} rows")),
    }
}

/// Executes batches of different requests. Returns whether responses differ from row to row.
fn compare(plan: &ModelPlan, instance: &Instance, most: usize) -> Result<bool, String> {
    // Every row alone, as a request of its own.
    let alone: Vec<Response> = (0..ROWS)
        .map(|row| {
            execute_one(instance, plan.build_request(&[row], 3), "of the batch, alone").only()
        })
        .collect::<Result<_, _>>()?;
    let mut cases = vec![vec![1, 1], vec![most], vec![1; most.min(256)]];
    if most >= 5 {
        cases.push(vec![2, 1, 2]);
    }
    // After larger batches, so that their rows would show if they were sent once more.
    cases.push(vec![1]);
    let mut next = 0;
    for case in cases {
        let begin = next;
        let mut rows = |n: usize| {
            let rows = (next..next + n).map(|row| row % ROWS).collect::<Vec<_>>();
            next += n;
            rows
        };
        let requests: Vec<Vec<usize>> = case.into_iter().map(&mut rows).collect();
        // Another row first, so that rows of this batch show in the next.
        next += if (next + 1) % ROWS == begin % ROWS { 2 } else { 1 };
        let executed = together(plan, instance, &requests);
        for (at, rows) in requests.iter().enumerate() {
            let found = executed.response(at)?;
            let expected = match joined(rows.iter().filter_map(|row| alone.get(*row))) {
                Some(expected) => expected,
                // The shape of an output depends on the request.
                None => execute_one(instance, plan.build_request(rows, 3), "of the batch, alone")
                    .only()?,
            };
            if let Some(difference) = first_difference(&expected, found) {
                let why = format!("{difference}, as in the response to the request alone");
                return Err(executed.fault(at, why));
            }
        }
    }
    let mut others = alone.iter().skip(1);
    Ok(others
        .any(|other| alone.first().is_some_and(|first| first_difference(first, other).is_some())))
}

fn together(plan: &ModelPlan, instance: &Instance, requests: &[Vec<usize>]) -> ExecutedBatch {
    let requests: Vec<_> = requests.iter().map(|rows| plan.build_request(rows, 3)).collect();
    execute_batch(instance, &requests, Layout::Ordinary, "")
}

/// The response to a request of all these rows; `None` if they do not fit together.
fn joined<'a>(mut rows: impl Iterator<Item = &'a Response>) -> Option<Response> {
    let mut whole = rows.next()?.clone();
    for row in rows {
        for output in &mut whole.outputs {
            append(output, row.output(&output.name)?)?;
        }
    }
    Some(whole)
}

fn append(whole: &mut Output, row: &Output) -> Option<()> {
    let (rows, shape) = whole.shape.split_first_mut()?;
    let (more, item) = row.shape.split_first()?;
    if *more != 1 || shape != item {
        return None;
    }
    *rows += 1;
    whole.data.extend_from_slice(&row.data);
    Some(())
}
