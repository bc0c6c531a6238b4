//! Protobuf text: model configurations on disk and the headers of v1 HTTP.
//!
//! Parsing is strict about names, as clients expect, and says where and what is wrong. Old names of
//! earlier releases are understood. Printing gives the classic forms, in several lines or in one.
mod lexer;
mod old_names;
mod parse;
mod places;
mod print;

pub use places::{TextPlace, TextPlaces};

use crate::schema::Described;
use lexer::SyntaxFault;

/// Why a text could not be read. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl std::fmt::Display for TextError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for TextError {}

/// Reads a message from its text form.
pub fn parse<M: Described>(text: &str) -> Result<M, TextError> {
    parse_in(text, &mut Vec::with_capacity(text.len()))
}

/// As [`parse`], with an empty buffer for the encoded message.
pub fn parse_in<M: Described>(text: &str, buffer: &mut Vec<u8>) -> Result<M, TextError> {
    let encoded = parse::TextParser::new(text).run_into(M::schema(), buffer);
    encoded.map_err(|fault| locate_fault(text, fault))?;
    decode_message(buffer)
}

/// As [`parse`], with the places of all values in the text.
pub fn parse_with_places<M: Described>(text: &str) -> Result<(M, TextPlaces), TextError> {
    let parsed = parse::TextParser::with_places(text).run_with_places(M::schema());
    let (bytes, places) = parsed.map_err(|fault| locate_fault(text, fault))?;
    Ok((decode_message(&bytes)?, places.finish(text)))
}

fn locate_fault(text: &str, fault: SyntaxFault) -> TextError {
    let (line, column) = line_and_column(text, fault.at);
    TextError { line, column, message: fault.message }
}

fn decode_message<M: Described>(bytes: &[u8]) -> Result<M, TextError> {
    M::decode(bytes).map_err(|e| TextError { line: 1, column: 1, message: e.to_string() })
}

/// The text form in several lines, indented by two spaces, with a newline at its end.
pub fn print<M: Described>(message: &M) -> String {
    print::print_lines(M::schema(), &message.encode_to_vec())
}

/// The text form in one line without a newline, as headers carry it. Plain ASCII whatever the
/// strings hold.
pub fn print_line<M: Described>(message: &M) -> String {
    print::print_line(M::schema(), &message.encode_to_vec())
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |n| n + 1);
    let line = 1 + before.bytes().filter(|b| *b == b'\n').count();
    (line, 1 + before[line_start..].chars().count())
}

/// `; did you mean X?` for the nearest name, if it is near enough.
pub(crate) fn nearest_name(typed: &str, names: impl Iterator<Item = &'static str>) -> String {
    // The name comes from the client and may have any length.
    if typed.len() > 64 {
        return String::new();
    }
    let typed = typed.to_ascii_lowercase();
    let distance = |name: &str| strsim::levenshtein(&typed, &name.to_ascii_lowercase());
    let best = names.map(|name| (distance(name), name)).min_by_key(|(d, _)| *d);
    match best {
        Some((distance, name)) if distance <= 1 + typed.len() / 4 => {
            format!("; did you mean {name}?")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
