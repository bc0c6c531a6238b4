//! Base64 in JSON bodies, as tools write it: in lines, and with or without `=` at the end.

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};
use trtserver_base::error::{Error, Result};

/// Triton's decoder passes over everything that is not base64. Here it is passed over only where it
/// cannot be a mistake.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes `text`, without spaces and line breaks.
///
/// # Errors
/// It is not base64; the text begins with `subject`.
pub fn decode_base64(text: &[u8], subject: impl FnOnce() -> String) -> Result<Vec<u8>> {
    let decoded = match text.iter().any(u8::is_ascii_whitespace) {
        false => ENGINE.decode(text),
        true => {
            let without = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
            ENGINE.decode(without.collect::<Vec<u8>>())
        }
    };
    decoded.map_err(|e| Error::invalid(format!("{}: it is not base64: {e}", subject())))
}

#[cfg(test)]
#[path = "base64_text_tests.rs"]
mod tests;
