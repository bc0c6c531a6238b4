//! W3C trace context that a client sends with a request.

/// The context of a caller: `traceparent` and `tracestate` (W3C Trace Context, level 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: [u8; 16],
    /// The caller's span.
    pub span_id: [u8; 8],
    pub flags: u8,
    /// As the caller sent it; empty if it sent none that is printable and short enough.
    pub state: String,
}

/// Longest `tracestate` that is passed on, as the standard asks for at least.
const MAX_STATE: usize = 512;
/// The caller records its trace.
const SAMPLED: u8 = 1;

impl TraceContext {
    /// Reads `traceparent`, and `tracestate` with it. `None` if the former is not valid: the
    /// standard then has the request start a trace of its own.
    pub fn parse(parent: &[u8], state: Option<&[u8]>) -> Option<Self> {
        let text = std::str::from_utf8(parent).ok()?.trim_matches([' ', '\t']);
        let mut parts = text.splitn(5, '-');
        let [version, trace, span, flags] = [(); 4].map(|()| parts.next());
        let [version] = read_hex::<1>(version?)?;
        // Later versions may add fields.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace_id, span_id) = (read_hex::<16>(trace?)?, read_hex::<8>(span?)?);
        let [flags] = read_hex::<1>(flags?)?;
        if trace_id == [0; 16] || span_id == [0; 8] {
            return None;
        }
        let state = state.filter(|state| state.len() <= MAX_STATE);
        let state = state.and_then(|state| std::str::from_utf8(state).ok());
        let printable = |state: &&str| state.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let state = state.filter(printable).unwrap_or_default().to_owned();
        Some(Self { trace_id, span_id, flags, state })
    }

    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The trace id in hexadecimal.
    pub fn trace_id_text(&self) -> String {
        self.trace_id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The header `traceparent`.
    pub fn parent_text(&self) -> String {
        let span: String = self.span_id.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("00-{}-{span}-{:02x}", self.trace_id_text(), self.flags)
    }
}

/// Lower-case hexadecimal digits, two for each byte.
fn read_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
