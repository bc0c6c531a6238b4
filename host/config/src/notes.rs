//! Flags that this server does not fully support: notes for the log, or an error.

use super::cache_settings::cache_notes;
use super::rate_limit_settings::rate_limit_notes;
use super::tls_settings::tls_notes;
use super::trace_settings::trace_notes;
use super::values::FlagValues;
use crate::cli::GivenFlags;
use crate::cli::catalogue::FlagStatus;

/// To be logged once the log is set up.
#[derive(Clone, Debug, PartialEq)]
pub enum StartNote {
    Info(String),
    Warning(String),
}

/// Notes about flags without effect or with a limited one.
///
/// # Errors
/// Flags that are not supported, one a line.
pub fn collect_notes(flags: &GivenFlags, values: &FlagValues) -> Result<Vec<StartNote>, String> {
    let mut notes = Vec::new();
    let mut refused = Vec::new();
    for (flag, given) in flags.iter() {
        let name = flag.name;
        let texts = values.texts(name);
        let outside = |list: &[&str]| texts.iter().find(|t| !list.contains(&t.as_str())).cloned();
        match flag.status {
            FlagStatus::Effective => {}
            FlagStatus::NoEffect(reason) => {
                notes.push(StartNote::Info(format!("--{name} has no effect: {reason}")))
            }
            FlagStatus::Warns { quiet, reason } => {
                if let Some(text) = outside(quiet) {
                    notes.push(StartNote::Warning(format!("--{name}={text}: {reason}")));
                }
            }
            FlagStatus::Unsupported { off, feature } => {
                if let Some(text) = outside(off) {
                    let origin = &given.origin;
                    refused.push(format!(
                        "{origin}--{name}={text} is not supported yet: this server does not have {feature}"
                    ));
                }
            }
        }
    }
    if !refused.is_empty() {
        return Err(refused.join("\n"));
    }
    let old = ["allow-model-control", "allow-poll-model-repository"];
    if flags.get("model-control-mode").is_some() && old.iter().any(|n| flags.get(n).is_some()) {
        notes.push(StartNote::Warning(
            "--allow-model-control or --allow-poll-model-repository can not be specified if \
             --model-control-mode is specified"
                .to_owned(),
        ));
    }
    notes.extend(tls_notes(flags, values)?);
    notes.extend(trace_notes(flags, values)?);
    notes.extend(cache_notes(values)?);
    notes.extend(polling_notes(flags, values)?);
    notes.extend(rate_limit_notes(flags, values)?);
    let mode = values.text("model-control-mode")?;
    let explicit = mode == "explicit" || values.bool("allow-model-control")?;
    if flags.get("load-model").is_some() && !explicit {
        notes.push(StartNote::Warning(
            "--load-model has no effect without --model-control-mode=explicit: all models are loaded".to_owned(),
        ));
    }
    Ok(notes)
}

/// Flags of polling that have no effect in the control mode.
fn polling_notes(flags: &GivenFlags, values: &FlagValues) -> Result<Vec<StartNote>, String> {
    let given = |name: &str| flags.get(name).is_some();
    let disabled = values.number::<u64>("repository-poll-secs")? == 0;
    let mode = match given("model-control-mode") {
        true => values.text("model-control-mode")?,
        false => return Ok(Vec::new()),
    };
    let mut notes = Vec::new();
    if mode == "poll" && disabled {
        let text = "--repository-poll-secs=0 disables polling: models are loaded at start only";
        notes.push(StartNote::Warning(text.to_owned()));
    }
    let unused = ["repository-poll-secs", "repository-settle-secs"].into_iter();
    for name in unused.filter(|name| mode != "poll" && !disabled && given(name)) {
        notes.push(StartNote::Warning(format!(
            "--{name} has no effect without --model-control-mode=poll"
        )));
    }
    Ok(notes)
}
