//! `--http-header-forward-pattern` and `--grpc-header-forward-pattern`: a regular expression for
//! names of headers.

use regex::bytes::{Regex, RegexBuilder};

/// Longest pattern, and the memory of its compiled form.
const MAX_PATTERN: usize = 4 << 10;
const MAX_COMPILED: usize = 1 << 20;

/// A header is forwarded if some part of its name matches. Ignores case unless the pattern begins
/// with `(?-i)`.
#[derive(Clone, Debug)]
pub struct HeaderPattern(Regex);

impl HeaderPattern {
    /// `None` for an empty pattern.
    pub fn parse(flag: &str, pattern: &str) -> Result<Option<Self>, String> {
        if pattern.is_empty() {
            return Ok(None);
        }
        if pattern.len() > MAX_PATTERN {
            return Err(format!(
                "--{flag}: the pattern has {} bytes, at most {MAX_PATTERN} are allowed",
                pattern.len()
            ));
        }
        // Names are ASCII: without Unicode, classes like \w stay small.
        let mut builder = RegexBuilder::new(pattern);
        builder.case_insensitive(true).unicode(false);
        builder.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED);
        let regex = builder.build().map_err(|e| {
            // The last line has the reason; the lines before it show the pattern.
            let text = e.to_string();
            let reason = text.lines().last().unwrap_or_default();
            format!("--{flag}: the pattern is not valid: {}", reason.trim_start_matches("error: "))
        })?;
        Ok(Some(Self(regex)))
    }

    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
    }
}

impl PartialEq for HeaderPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

#[cfg(test)]
#[path = "header_pattern_tests.rs"]
mod tests;
