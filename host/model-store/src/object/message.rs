//! Error messages of object stores for log and clients: one line, without what could be a
//! credential.
//!
//! S3 repeats an expired session token in the body of its response, so of a body only code and
//! message are kept.

const MAX: usize = 500;

pub fn describe_store_error(e: &object_store::Error) -> String {
    // The outermost text is the most general: "Generic S3 error". The innermost has no request.
    let mut text = e.to_string();
    let mut source = std::error::Error::source(e);
    while let Some(cause) = source {
        let inner = cause.to_string();
        if !text.contains(&inner) {
            text = format!("{text}: {inner}");
        }
        source = cause.source();
    }
    shorten_text(&text)
}

fn shorten_text(text: &str) -> String {
    let body = text.find("<?xml").or_else(|| text.find("<Error>"));
    let mut short = match body {
        Some(start) => {
            let (head, body) = text.split_at(start);
            let parts = [xml_element(body, "Code"), xml_element(body, "Message")];
            let parts: Vec<&str> = parts.into_iter().flatten().collect();
            format!("{}{}", head, parts.join(": "))
        }
        None => text.to_owned(),
    };
    // Durations and numbers of retries differ each time, but a poll compares errors with earlier
    // ones.
    if let Some((call, reason)) = short.split_once(" - ")
        && let Some((call, _)) = call.rsplit_once(" in ")
    {
        short = format!("{call}: {reason}");
    }
    short = short.split_whitespace().collect::<Vec<_>>().join(" ");
    if short.len() > MAX {
        let end = (0..=MAX).rev().find(|at| short.is_char_boundary(*at)).unwrap_or_default();
        short.truncate(end);
        short.push('…');
    }
    short
}

/// The text of the first element `name`.
fn xml_element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
