//! Comments of a configuration may be in any encoding, such as GBK or Latin-1: nothing reads them.

/// The text with comments in UTF-8: what is not has replacement characters. Lines stay as they are.
pub fn readable_comments(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let (code, comment) = line.split_at(comment_start(line));
        out.extend_from_slice(code);
        out.extend_from_slice(String::from_utf8_lossy(comment).as_bytes());
    }
    out
}

/// Where the comment of a line begins, else its length. Strings end on their line.
fn comment_start(line: &[u8]) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (at, &byte) in line.iter().enumerate() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if byte == b'\\' => escaped = true,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if byte == b'#' => return at,
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None => {}
        }
    }
    line.len()
}

#[cfg(test)]
#[path = "comment_bytes_tests.rs"]
mod tests;
