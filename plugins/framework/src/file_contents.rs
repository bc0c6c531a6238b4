//! What a file is that should be a model and cannot be read: a Git LFS pointer, a page of a web
//! server, a part of a model.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;
use trtserver_proto_wire::{Fields, WireError};

/// Models in protobuf messages are not larger.
const MAX_MESSAGE: u64 = i32::MAX as u64;

/// How much tells text apart.
const HEAD: u64 = 512;

/// A sentence about a file that a framework could not read as an encoded protobuf message; `None`
/// if it looks like one.
pub fn explain_contents(path: &Path) -> Option<String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return explain_unopened(&error),
    };
    let size = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.take(HEAD).read_to_end(&mut bytes).ok()?;
    if let Some(text) = explain_head(&bytes) {
        return Some(text);
    }
    if size > MAX_MESSAGE {
        return None;
    }
    match Fields::new(&std::fs::read(path).ok()?).find_map(Result::err)? {
        WireError::Truncated => Some(format!(
            "the file is truncated: it ends within a field, after {size} bytes; copy or download it again"
        )),
        _ => Some(format!("the file of {size} bytes is not an encoded protobuf message")),
    }
}

/// Frameworks give the number of the error at most.
fn explain_unopened(error: &Error) -> Option<String> {
    (error.kind() == ErrorKind::PermissionDenied).then(|| {
        "the server may not read the file: make it readable for the user that the server runs as".to_owned()
    })
}

fn explain_head(bytes: &[u8]) -> Option<String> {
    let is_text = |start| lower_text(bytes).starts_with(start);
    let what = explain_foreign(bytes).or_else(|| {
        is_text("{").then_some(
            "the file is a text and not a model: perhaps the error of a server that it was downloaded from",
        )
    });
    what.map(str::to_owned)
}

/// A sentence about a file, of which these are the first bytes, that is not a model of any
/// framework.
pub fn explain_foreign(bytes: &[u8]) -> Option<&'static str> {
    let text = lower_text(bytes);
    let is = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    if bytes.is_empty() {
        Some("the file is empty")
    } else if is(&["version https://git-lfs.github.com/spec/"]) {
        Some(
            "the file is a Git LFS pointer and not the model: `git lfs pull` in its repository fetches the model",
        )
    } else if is(&["<!doctype html", "<html"]) {
        Some(
            "the file is an HTML page and not a model: the address that it was downloaded from is that of a page, or \
             the download was refused",
        )
    } else if is(&["<?xml", "<error"]) {
        Some(
            "the file is a text and not a model: perhaps the error of a server that it was downloaded from",
        )
    } else {
        None
    }
}

/// The first bytes of a file as text, without what may come before the first word.
fn lower_text(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(HEAD as usize)];
    let text = String::from_utf8_lossy(head);
    text.trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase()
}

#[cfg(test)]
#[path = "file_contents_tests.rs"]
mod tests;
