//! Formats one event as one line.
//!
//! Messages, fields and the source files that backends name may contain client input. Control
//! characters are escaped, so a record cannot end its line, move the cursor, or forge another one.
//! Long texts are cut in the middle: the reason of an error is at its end.

use std::fmt::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use crate::LogFormat;

/// Bytes of a message, with its fields, and of one field.
pub const MAX_MESSAGE: usize = 16 << 10;
const MAX_FIELD: usize = 4 << 10;
/// Characters of the name of a source file.
const MAX_FILE: usize = 100;

/// The parts of an event. The fields `at.file` and `at.line` replace its source location, for
/// messages logged on behalf of a backend.
#[derive(Debug)]
pub struct LogLine {
    pub now: SystemTime,
    pub pid: u32,
    pub level: Level,
    pub target: String,
    pub file: String,
    pub line: u64,
    pub message: String,
    pub fields: Vec<(String, Value)>,
}

impl LogLine {
    pub fn new(event: &Event<'_>, now: SystemTime, pid: u32) -> LogLine {
        let metadata = event.metadata();
        let mut record = LogLine {
            now,
            pid,
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            file: metadata.file().unwrap_or("?").to_owned(),
            line: metadata.line().unwrap_or(0).into(),
            message: String::new(),
            fields: Vec::new(),
        };
        event.record(&mut record);
        record.file = place_text(&record.file);
        record
    }

    /// The formatted line, with its newline.
    pub fn line(&self, format: LogFormat, escape: bool) -> String {
        let time = UtcTime::from(self.now);
        let file = &self.file;
        let letter = match self.level {
            Level::ERROR => 'E',
            Level::WARN => 'W',
            _ => 'I',
        };
        let LogLine { pid, line, .. } = self;
        let UtcTime { year, month, day, hour, minute, second, micros } = time;
        match format {
            LogFormat::Default => {
                let text = if escape { quote_text(&self.text()) } else { self.text() };
                format!(
                    "{letter}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06} \
                     {pid} {file}:{line}] {text}\n"
                )
            }
            LogFormat::Iso8601 => {
                let text = if escape { quote_text(&self.text()) } else { self.text() };
                format!(
                    "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z {letter} \
                     {pid} {file}:{line}] {text}\n"
                )
            }
            LogFormat::Json => {
                let mut out = format!(
                    "{{\"time\":\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.\
                     {micros:06}Z\",\"level\":\"{level}\",\"pid\":{pid},\"file\":{file},\"line\":{line},\
                     \"target\":{target},\"message\":{message}",
                    level = self.level,
                    file = quote_text(file),
                    target = quote_text(&self.target),
                    message = quote_text(&self.message),
                );
                for (i, (name, value)) in self.fields.iter().enumerate() {
                    out.push_str(if i == 0 { ",\"fields\":{" } else { "," });
                    // Writing to a String cannot fail.
                    let _ = write!(out, "{}:{}", quote_text(name), escape_text(&value.to_string()));
                }
                out.push_str(if self.fields.is_empty() { "}\n" } else { "}}\n" });
                out
            }
        }
    }

    /// The message, followed by the fields.
    pub fn text(&self) -> String {
        let mut text = self.message.clone();
        for (name, value) in &self.fields {
            let value = match value {
                Value::String(s) if is_plain_text(s) => s.clone(),
                value => value.to_string(),
            };
            if !text.is_empty() {
                text.push(' ');
            }
            // Writing to a String cannot fail.
            let _ = write!(text, "{name}={value}");
        }
        cut_text(text, MAX_MESSAGE)
    }

    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = cut_text(text, MAX_MESSAGE),
            ("message", value) => self.message = value.to_string(),
            ("at.file", Value::String(file)) => self.file = file,
            ("at.line", Value::Number(line)) => self.line = line.as_u64().unwrap_or(0),
            (name, value) => {
                let value = match value {
                    Value::String(text) => cut_text(text, MAX_FIELD).into(),
                    value => value,
                };
                self.fields.push((name.trim_start_matches("r#").to_owned(), value));
            }
        }
    }
}

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

/// The name of a source file, which stands before the quotes of a message: without folders, and
/// without characters that could end it.
fn place_text(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '?');
    name.chars().take(MAX_FILE).map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// At most `max` bytes of `text` and a note: most of its begin and some of its end.
pub fn cut_text(mut text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let end = text.floor_char_boundary(max / 4 * 3);
    let begin = text.ceil_char_boundary(text.len() - max / 4);
    text.replace_range(end..begin, &format!(" … ({} bytes left out) … ", begin - end));
    text
}

/// Whether a field's text is unambiguous without quotes.
fn is_plain_text(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c == '"' || c == '=')
}

/// Characters that end a line or control a terminal.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_unsafe(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// A JSON string. Control characters that JSON allows are escaped, too.
fn quote_text(text: &str) -> String {
    escape_text(&Value::from(text).to_string())
}

/// UTC in the proleptic Gregorian calendar.
struct UtcTime {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: u32,
}

impl From<SystemTime> for UtcTime {
    fn from(time: SystemTime) -> UtcTime {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // Count years from March, so that the leap day is the last day of a year; 719468 days lie
        // between 1 March of year 0 and 1 January 1970, and 146097 days are 400 years.
        let days = days.saturating_add(719_468);
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let (month, day, carry) = match month {
            0..10 => (month + 3, day - (153 * month + 2) / 5 + 1, 0),
            _ => (month - 9, day - (153 * month + 2) / 5 + 1, 1),
        };
        UtcTime {
            year: era * 400 + year + carry,
            month,
            day,
            hour: rest / 3_600,
            minute: rest / 60 % 60,
            second: rest % 60,
            micros: since.subsec_micros(),
        }
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
