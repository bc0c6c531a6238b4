//! The model to check with, if none is given: tries models of the check until a request to one
//! succeeds.

use super::execute::execute_one;
use super::findings::{report_breach, set_scenario};
use super::model::{BackendPlatforms, ModelPlan};
use std::path::Path;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_testkit::{self as testkit, Backend, InstanceSpec};

/// Whether the backend serves models that batch. Known with the model to check with, which batches
/// if it can.
pub enum Batching {
    Served,
    /// No model that batches could be opened, for this reason.
    Refused(String),
    /// A model opens when it batches, and then fails requests that it responds to when it does not
    /// batch.
    Fails(String),
}

/// Codes of a backend that serves other tensors than those of the model.
const REFUSALS: [u32; 3] = [code::INVALID, code::UNSUPPORTED, code::NOT_FOUND];

/// What became of a model of the check.
enum TrialOutcome {
    Responds,
    /// It does not open.
    Refused(String),
    /// It opens, and fails a request.
    Fails(RequestFailure),
}

struct RequestFailure {
    why: String,
    /// The backend refused the request, as one for another model; it did not break down.
    refused: bool,
}

/// The first model of the check that responds: the first that batches, else the first that does
/// not. `dir` is an empty model directory.
///
/// # Errors
/// No model responds. If one opened and the backend broke down, this is reported as a violation,
/// too.
pub fn find_model(
    backend: &Backend,
    dir: &Path,
    platforms: &BackendPlatforms,
) -> Result<(ModelPlan, Batching), String> {
    let (mut refusal, mut batching) = (String::new(), Vec::new());
    let (mut failures, mut suspect) = (Vec::<RequestFailure>::new(), None);
    'models: for batch in [8, 0] {
        for (at, plan) in ModelPlan::own(dir, platforms, batch).into_iter().enumerate() {
            let tried = attempt(backend, &plan);
            let seen = testkit::take_suspect();
            match tried {
                TrialOutcome::Responds => {
                    let twin = batching.into_iter().find(|(twin, _)| *twin == at);
                    let batching = match twin {
                        _ if batch > 0 => Batching::Served,
                        Some((_, why)) => Batching::Fails(why),
                        None => Batching::Refused(no_batching(&refusal)),
                    };
                    return Ok((plan, batching));
                }
                TrialOutcome::Refused(why) => refusal = why,
                TrialOutcome::Fails(failed) => {
                    if batch > 0 {
                        let seen = seen.as_ref().map(|(_, text)| text.as_str());
                        batching.push((at, fails_when_batching(&plan, &failed.why, seen)));
                    }
                    failures.push(failed);
                }
            }
            suspect = suspect.or(seen);
            if testkit::timed_out() {
                break 'models;
            }
        }
    }
    if let Some((promise, text)) = suspect {
        report_breach(promise, text);
    }
    let hint = "check with --model DIR, the directory of a model with its config.pbtxt";
    let broken = failures.iter().find(|failed| !failed.refused);
    let Some(failed) = broken.or(failures.first()) else {
        return Err(format!("it refuses all models of the check ('{refusal}'); {hint}"));
    };
    let why = format!("no request to a model of the check succeeds ({}); {hint}", failed.why);
    if !failed.refused {
        report_breach("request.single", &why);
    }
    Err(why)
}

fn no_batching(refusal: &str) -> String {
    format!(
        "every model of the check that batches is refused ('{refusal}'); if the backend can batch, check with --model DIR, \
         the directory of a model with a max_batch_size"
    )
}

fn fails_when_batching(plan: &ModelPlan, why: &str, violation: Option<&str>) -> String {
    let violation = violation.map_or_else(String::new, |text| format!(" ({text})"));
    format!(
        "{} opens, and then {why}{violation}; without batching it responds. A backend that cannot batch refuses a \
         max_batch_size when the model is opened",
        plan.label
    )
}

fn attempt(backend: &Backend, plan: &ModelPlan) -> TrialOutcome {
    let model = match backend.open_model(&plan.spec()) {
        Ok(model) => model,
        Err(e) => return TrialOutcome::Refused(e.text),
    };
    // A crash in the request is not a fault of opening the model.
    set_scenario("request.single");
    let request = plan.request(1, 3, 0).unchecked();
    let what = format!("to {}", plan.label);
    let tried = match model.open_instance(&InstanceSpec::default()) {
        Err(e) => TrialOutcome::Refused(e.text),
        Ok(instance) => {
            let executed = execute_one(&instance, request, &what);
            let code =
                executed.outcomes.first().and_then(|o| o.result.as_ref().err()).map(|e| e.code);
            let refused = code.is_some_and(|code| REFUSALS.contains(&code));
            match executed.only() {
                Ok(_) => TrialOutcome::Responds,
                Err(why) => TrialOutcome::Fails(RequestFailure { why, refused }),
            }
        }
    };
    drop(model);
    set_scenario("model.open");
    tried
}
