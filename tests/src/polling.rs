//! Servers that poll their repository, and what their models respond.

use crate::repository::{Repository, parameters, probe};
use crate::scheduled::{accumulator, flag, sequences};
use crate::server::{Running, Server, inference};
use serde_json::Value;
use std::fs;

/// Looks at changed files soon, and loads them when they have settled for a short time.
pub fn polling() -> Server {
    Server::new()
        .flag("--model-control-mode=poll")
        .flag("--repository-poll-secs=1")
        .flag("--repository-settle-secs=0.05")
}

/// The parameter that makes a model add the number in the file `value` of its version.
fn from_file() -> String {
    parameters(&[("base_file", "value")])
}

/// A model of the test plugin that adds the number in the file `value` of its version to its input.
pub fn numbered(name: &str) -> String {
    probe(name, &[]) + &from_file()
}

/// A sequence model whose sums begin with the number in the file `value` of its version.
pub fn numbered_sums(name: &str, idle_us: &str) -> String {
    let controls = [flag("START", "int32"), flag("END", "int32"), flag("READY", "int32")];
    accumulator(name, 4, "slot", &sequences(idle_us, "direct { }", &controls)) + &from_file()
}

/// All versions are served.
pub const ALL: &str = "version_policy { all { } }\n";

impl Repository {
    /// Writes the number of a version as editors do: to another file, which is renamed.
    pub fn number(&self, model: &str, version: i64, number: i64) {
        let part = self.file(format!("{model}/{version}/value.tmp"), number.to_string());
        let file = part.with_file_name("value");
        fs::rename(&part, &file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    }
}

pub trait Polled {
    /// The version that responds, and the number that it adds; `None` for an error.
    fn answer(&self, model: &str) -> Option<(i64, i64)>;
    /// Waits until that is the answer.
    fn wait_for_answer(&self, model: &str, version: i64, number: i64);
    /// Waits until the log says that version 1 and those after it were opened so many times.
    fn wait_until_opened<const N: usize>(&self, model: &str, times: [usize; N]);
    /// Entries of the repository index.
    fn entries(&self, model: &str) -> Vec<Value>;
    /// The reason of the model's first version in the index.
    fn reason(&self, model: &str) -> String;
}

impl Polled for Running {
    fn answer(&self, model: &str) -> Option<(i64, i64)> {
        let response = self.send(inference(model, ""));
        if response.status != 200 {
            return None;
        }
        let json = response.json();
        let version = json["model_version"].as_str()?.parse().ok()?;
        let first = json["outputs"][0]["data"][0].as_f64()?;
        Some((version, first as i64 - 1))
    }

    #[track_caller]
    fn wait_for_answer(&self, model: &str, version: i64, number: i64) {
        let what = format!("{model} adds {number} as version {version}");
        self.poll_until(&what, |server| server.answer(model) == Some((version, number)));
    }

    #[track_caller]
    fn wait_until_opened<const N: usize>(&self, model: &str, times: [usize; N]) {
        let opened = |log: &str, version: usize| {
            let line = |action: &str| format!("\"{action}: {model}:{version}\"");
            let (first, more) = (line("loading"), line("re-loading"));
            log.lines().filter(|text| text.ends_with(&first) || text.ends_with(&more)).count()
        };
        let all = |log: &str| std::array::from_fn(|i| opened(log, i + 1)) == times;
        self.poll_until(&format!("{model} was opened {times:?} times"), |s| all(&s.log()));
    }

    #[track_caller]
    fn entries(&self, model: &str) -> Vec<Value> {
        let index = self.post("/v2/repository/index", &[], "").json();
        let all = index.as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|entry| entry["name"] == model).collect()
    }

    #[track_caller]
    fn reason(&self, model: &str) -> String {
        let entries = self.entries(model);
        let reason = entries.first().and_then(|entry| entry["reason"].as_str());
        reason.unwrap_or_default().to_owned()
    }
}
