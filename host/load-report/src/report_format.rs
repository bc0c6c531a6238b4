//! The form in which a response has its load report: what the request asks for, and the header or
//! trailer with the report.

use crate::LoadReport;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue};

/// What a client sends to get a report, as Triton's clients do: `text`, `json` or `bin`.
const FORMAT: HeaderName = HeaderName::from_static("endpoint-load-metrics-format");
/// The report as text or JSON.
pub const REPORT: HeaderName = HeaderName::from_static("endpoint-load-metrics");
/// The message, as metadata of gRPC has binary values.
const BINARY_REPORT: HeaderName = HeaderName::from_static("endpoint-load-metrics-bin");

/// The form of a report in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    Text,
    Json,
    /// The message in base64.
    Binary,
}

impl ReportFormat {
    /// What a request asks for. An unknown form is ignored, as by Triton.
    pub fn requested(headers: &HeaderMap) -> Option<Self> {
        // Cheaper than a look-up, which computes a hash.
        let (_, format) = headers.iter().find(|(name, _)| **name == FORMAT)?;
        match format.as_bytes() {
            b"text" => Some(Self::Text),
            b"json" => Some(Self::Json),
            b"bin" => Some(Self::Binary),
            _ => None,
        }
    }

    /// Adds the report to the headers or trailers of a response.
    pub fn add_to(self, headers: &mut HeaderMap, report: &LoadReport) {
        let (name, value) = match self {
            Self::Text => (REPORT, format!("TEXT {}", report.text())),
            Self::Json => (REPORT, format!("JSON {}", report.json())),
            Self::Binary => (BINARY_REPORT, STANDARD_NO_PAD.encode(report.bytes())),
        };
        // All three are made of visible ASCII and spaces.
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
#[path = "report_format_tests.rs"]
mod tests;
