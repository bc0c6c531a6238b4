//! Header forwarding (docs/protocol/v2.md §1.8, §2.12): headers whose names match a pattern become
//! string parameters of inference requests.

use super::RequestParameters;
use http::HeaderMap;
use trtserver_base::error::{Error, Result};
use trtserver_config::HeaderPattern;
use trtserver_request::ParameterValue;

/// Parameters that the server reads itself; a client must not set them with a header.
const RESERVED: [&str; 7] = [
    "sequence_id",
    "sequence_start",
    "sequence_end",
    "priority",
    "timeout",
    "headers",
    "binary_data_output",
];

/// The headers of one request that are forwarded.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardedHeaders(Vec<(String, ParameterValue)>);

impl ForwardedHeaders {
    /// `None` if no header is forwarded; boxed, because that is the rule.
    ///
    /// # Errors
    /// A header that matches has a reserved name.
    pub fn from_headers(
        pattern: Option<&HeaderPattern>,
        headers: &HeaderMap,
    ) -> Result<Option<Box<Self>>> {
        match pattern {
            None => Ok(None),
            Some(pattern) => Self::matching(pattern, headers),
        }
    }

    fn matching(pattern: &HeaderPattern, headers: &HeaderMap) -> Result<Option<Box<Self>>> {
        let mut forwarded = Vec::new();
        for (name, value) in headers {
            let name = name.as_str();
            if is_of_grpc(name) || !pattern.matches(name) {
                continue;
            }
            if RESERVED.contains(&name) || name.starts_with("triton_") {
                return Err(Error::invalid(format!(
                    "Header '{name}' is reserved for Triton usage and cannot be forwarded."
                )));
            }
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            forwarded.push((name.to_owned(), ParameterValue::String(value)));
        }
        Ok((!forwarded.is_empty()).then(|| Box::new(Self(forwarded))))
    }

    /// Adds the headers to the parameters of a request. They take precedence: a proxy may have set
    /// them for the client.
    pub fn add_to(&self, parameters: &mut RequestParameters) {
        let is_forwarded = |key: &str| self.0.iter().any(|(name, _)| name == key);
        parameters.custom.retain(|(key, _)| !is_forwarded(key));
        parameters.custom.extend(self.0.iter().cloned());
    }
}

/// Headers of the gRPC protocol itself, which are not metadata.
fn is_of_grpc(name: &str) -> bool {
    matches!(name, "te" | "content-type") || name.starts_with("grpc-")
}

#[cfg(test)]
#[path = "forwarded_headers_tests.rs"]
mod tests;
