//! Whether a request is recorded, given its caller's decision: `OTEL_TRACES_SAMPLER`.

use crate::ids::TraceId;

/// Decides which requests are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceSampler {
    pub parent: ParentRule,
    pub root: RootRule,
}

/// What the caller's `traceparent` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentRule {
    /// As the caller decided.
    Based,
    /// Triton's rule: a request with a caller's span is recorded.
    Always,
    /// Nothing.
    Ignored,
}

/// For requests that the caller's span does not decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RootRule {
    /// One in N, as the trace settings say.
    Rate,
    Always,
    Never,
    /// This share of the traces, the same ones in all servers.
    Ratio(f64),
}

impl Default for TraceSampler {
    fn default() -> Self {
        Self { parent: ParentRule::Based, root: RootRule::Rate }
    }
}

impl TraceSampler {
    /// Of `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`; `None` without the first.
    ///
    /// # Errors
    /// Names the variable whose value cannot be used.
    pub fn read(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let variable = |name| env(name).filter(|value| !value.trim().is_empty());
        let Some(name) = variable("OTEL_TRACES_SAMPLER") else { return Ok(None) };
        let name = name.trim();
        let (parent, root) = match name.strip_prefix("parentbased_") {
            Some(root) => (ParentRule::Based, root),
            None => (ParentRule::Ignored, name),
        };
        let root = match root {
            "always_on" => RootRule::Always,
            "always_off" => RootRule::Never,
            "traceidratio" => {
                let text = variable("OTEL_TRACES_SAMPLER_ARG").unwrap_or_else(|| "1".to_owned());
                let ratio = text.trim().parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                RootRule::Ratio(ratio.ok_or_else(|| {
                    format!(
                        "environment variable OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1, got '{text}'"
                    )
                })?)
            }
            _ => {
                return Err(format!(
                    "environment variable OTEL_TRACES_SAMPLER: expected always_on, always_off or traceidratio, or one of \
                     them after 'parentbased_', got '{name}'"
                ));
            }
        };
        Ok(Some(Self { parent, root }))
    }

    /// `None`: the rate of the trace settings decides.
    pub fn decide(
        &self,
        caller_records: Option<bool>,
        trace_id: impl FnOnce() -> TraceId,
    ) -> Option<bool> {
        match (self.parent, caller_records) {
            (ParentRule::Based, Some(records)) => return Some(records),
            (ParentRule::Always, Some(_)) => return Some(true),
            _ => {}
        }
        match self.root {
            RootRule::Rate => None,
            RootRule::Always => Some(true),
            RootRule::Never => Some(false),
            RootRule::Ratio(ratio) => {
                // The last seven bytes are random in every trace id.
                let low = u128::from_be_bytes(trace_id().0) as u64 & ((1 << 56) - 1);
                Some((low as f64) < ratio * (1_u64 << 56) as f64)
            }
        }
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
