//! A load report, and its forms: text, JSON and the message of ORCA.

use prost::Message;
use std::fmt::Write;
use trtserver_proto::load_report::OrcaLoadReport;

/// Models in a report: the busiest ones, so that a response has a header of bounded size.
pub const MAX_MODELS: usize = 16;

/// What a load balancer reads. All values are of the last second or less.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Of the busiest model: the part of its instances' time that was spent on executions, plus the
    /// predicted wait of a new request in units of the wait that is still good. From 1 on requests
    /// wait.
    pub application_utilization: f64,
    /// Requests to models that ended in a second, those of ensemble steps included.
    pub requests_per_second: f64,
    /// Those of them that failed.
    pub errors_per_second: f64,
    /// The utilization of single models (`model.NAME`) and GPUs (`gpu.UUID`).
    pub utilization: Vec<(String, f64)>,
    /// Requests that wait.
    pub pending_requests: usize,
    /// The server drains: after SIGTERM it takes requests for the drain delay, and no new ones then.
    pub draining: bool,
}

impl LoadReport {
    /// `application_utilization=0.5, rps_fractional=10, …`. Names lose the characters that would
    /// end them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut put = |name: &str, value: f64| {
            let separator = if text.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{name}={value:.6}");
        };
        put("application_utilization", self.application_utilization);
        put("rps_fractional", self.requests_per_second);
        put("eps", self.errors_per_second);
        for (name, value) in &self.utilization {
            put(&format!("utilization.{}", plain_name(name)), *value);
        }
        for (name, value) in self.named_metrics() {
            put(&format!("named_metrics.{name}"), value);
        }
        text
    }

    pub fn json(&self) -> String {
        let map = |values: &mut dyn Iterator<Item = (&str, f64)>| -> serde_json::Map<_, _> {
            values.map(|(name, value)| (name.to_owned(), value.into())).collect()
        };
        let mut utilization = self.utilization.iter().map(|(name, load)| (name.as_str(), *load));
        let report = serde_json::json!({
            "application_utilization": self.application_utilization,
            "rps_fractional": self.requests_per_second,
            "eps": self.errors_per_second,
            "utilization": map(&mut utilization),
            "named_metrics": map(&mut self.named_metrics().into_iter()),
        });
        ascii_json(&report.to_string())
    }

    pub fn message(&self) -> OrcaLoadReport {
        OrcaLoadReport {
            application_utilization: self.application_utilization,
            rps_fractional: self.requests_per_second,
            eps: self.errors_per_second,
            utilization: self.utilization.iter().cloned().collect(),
            named_metrics: self
                .named_metrics()
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter()
                .collect(),
            ..OrcaLoadReport::default()
        }
    }

    /// The encoded message.
    pub fn bytes(&self) -> Vec<u8> {
        self.message().encode_to_vec()
    }

    /// Values that ORCA has no field for.
    fn named_metrics(&self) -> [(&'static str, f64); 2] {
        [
            ("pending_requests", self.pending_requests as f64),
            ("draining", f64::from(u8::from(self.draining))),
        ]
    }
}

/// A name that has no character with a meaning in the text form.
fn plain_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() && !",=:\"".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// JSON without characters that a header may not have. They occur in strings only.
fn ascii_json(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        if c.is_ascii() && c != '\x7f' {
            ascii.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            let _ = write!(ascii, "\\u{unit:04x}");
        }
    }
    ascii
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
