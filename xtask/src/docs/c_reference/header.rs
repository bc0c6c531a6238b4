//! Reads a C header: its declarations, and the comment of each.
//!
//! Not a C parser: it knows the forms that the headers of this repository have. What it does not know
//! is an error, so that no declaration is missing from the reference in silence.

mod scanner;

use crate::command::Result;
use scanner::{Comment, Piece, Scanner, Separator};

/// What a header declares, in its order.
#[derive(Debug, Default, PartialEq)]
pub struct Header {
    /// The comment at the top, in paragraphs.
    pub introduction: String,
    pub items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A heading: `/* ---- Errors ---- */`.
    Section(String),
    /// A comment that a blank line follows: of what comes after it, as a whole.
    Note(String),
    Declaration(Declaration),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    pub kind: DeclarationKind,
    /// For an enumeration, which has no name of its own, what its constants have in common.
    pub name: String,
    /// Without comments and members.
    pub code: String,
    /// Empty if there is none.
    pub comment: String,
    pub members: Vec<Member>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclarationKind {
    Function,
    Struct,
    Enumeration,
    /// A handle, or the type of a function.
    Type,
    Macro,
}

/// A field of a structure, or a constant of an enumeration.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub name: String,
    pub code: String,
    pub comment: String,
}

/// # Errors
/// A declaration has a form that is not known; the error shows it.
pub fn read_header(text: &str) -> Result<Header> {
    let mut header = Header::default();
    let mut scanner = Scanner::new(text);
    // Of the declaration that follows.
    let mut above = String::new();
    while let Some(piece) = scanner.next_piece(Separator::Semicolon)? {
        match piece {
            Piece::Comment(comment) => place_comment(&mut header, &mut above, comment),
            Piece::Directive(line) => {
                if let Some((name, code)) = read_macro(&line)
                    && !header.declarations().any(|declared| declared.name == name)
                {
                    let comment = std::mem::take(&mut above);
                    let kind = DeclarationKind::Macro;
                    let members = Vec::new();
                    let declared = Declaration { kind, name, code, comment, members };
                    header.items.push(Item::Declaration(declared));
                }
            }
            Piece::Text { code, body } => {
                let comment = std::mem::take(&mut above);
                let declared = read_declaration(&code, body.as_deref(), comment)?;
                header.items.push(Item::Declaration(declared));
            }
        }
    }
    Ok(header)
}

impl Header {
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.items.iter().filter_map(|item| match item {
            Item::Declaration(declared) => Some(declared),
            _ => None,
        })
    }
}

fn place_comment(header: &mut Header, above: &mut String, comment: Comment) {
    let Comment { text, behind, blank_follows } = comment;
    if let Some(title) = section_title(&text) {
        header.items.push(Item::Section(title.to_owned()));
        return;
    }
    match header.items.last_mut() {
        Some(Item::Declaration(last)) if behind => append(&mut last.comment, &text),
        None if text.starts_with("SPDX-License-Identifier") => {}
        None if header.introduction.is_empty() => {
            header.introduction = without_licence(&text);
        }
        _ if blank_follows => header.items.push(Item::Note(text)),
        _ => append(above, &text),
    }
}

fn without_licence(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|text| !text.starts_with("SPDX-License-Identifier"));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

fn append(to: &mut String, text: &str) {
    if !to.is_empty() {
        to.push_str("\n\n");
    }
    to.push_str(text);
}

/// `Errors` of `---- Errors ----`.
fn section_title(text: &str) -> Option<&str> {
    let title = text.strip_prefix("--")?.strip_suffix("--")?;
    Some(title.trim_matches(['-', ' ']))
}

/// Name and code of a `#define`; none for the macro against double inclusion, and for other lines.
fn read_macro(line: &str) -> Option<(String, String)> {
    let defined = line.strip_prefix("#define ")?;
    let end = defined.find(|c: char| !is_name(c)).unwrap_or(defined.len());
    let name = &defined[..end];
    (!name.ends_with("_H")).then(|| (name.to_owned(), line.trim_end().to_owned()))
}

fn read_declaration(code: &str, body: Option<&str>, comment: String) -> Result<Declaration> {
    let unknown = || format!("a declaration of unknown form: {code}");
    let (kind, name, members) = match body {
        Some(body) if code.starts_with("typedef struct") || code.starts_with("struct") => {
            let name = code.split_whitespace().rfind(|word| word.starts_with(is_name));
            let name = name.ok_or_else(unknown)?.to_owned();
            (DeclarationKind::Struct, name, read_members(body, Separator::Semicolon)?)
        }
        Some(body) if code.starts_with("enum") => {
            let members = read_members(body, Separator::Comma)?;
            (DeclarationKind::Enumeration, common_name(&members), members)
        }
        None if code.starts_with("typedef") => {
            (DeclarationKind::Type, declared_name(code).ok_or_else(unknown)?, Vec::new())
        }
        // A function, perhaps with its code.
        _ => {
            let (before, _) = code.split_once('(').ok_or_else(unknown)?;
            (DeclarationKind::Function, last_name(before).ok_or_else(unknown)?, Vec::new())
        }
    };
    Ok(Declaration { kind, name, code: code.to_owned(), comment, members })
}

fn read_members(body: &str, separator: Separator) -> Result<Vec<Member>> {
    let mut members: Vec<Member> = Vec::new();
    let mut scanner = Scanner::new(body);
    let mut above = String::new();
    while let Some(piece) = scanner.next_piece(separator)? {
        match piece {
            Piece::Comment(comment) => match members.last_mut() {
                _ if section_title(&comment.text).is_some() => {}
                Some(last) if comment.behind => append(&mut last.comment, &comment.text),
                _ => append(&mut above, &comment.text),
            },
            Piece::Text { code, body: None } => {
                let name = declared_name(code.split('=').next().unwrap_or_default());
                let name = name.ok_or_else(|| format!("a member of unknown form: {code}"))?;
                members.push(Member { name, code, comment: std::mem::take(&mut above) });
            }
            Piece::Directive(code) | Piece::Text { code, .. } => {
                return Err(format!("a member of unknown form: {code}"));
            }
        }
    }
    Ok(members)
}

/// `open` of `int (*open)(void)`, `id` of `uint8_t id[16]` and `x` of `const void *x`.
fn declared_name(code: &str) -> Option<String> {
    match code.split_once("(*") {
        Some((_, rest)) => last_name(rest.split(')').next()?),
        None => last_name(code.split('[').next()?),
    }
}

fn last_name(code: &str) -> Option<String> {
    let end = code.trim_end_matches(|c: char| !is_name(c));
    let name = end.rsplit(|c: char| !is_name(c)).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// `TRTS_KIND_` of `TRTS_KIND_GPU` and `TRTS_KIND_CPU`; the name itself of a single constant.
fn common_name(members: &[Member]) -> String {
    let Some(first) = members.first() else { return String::new() };
    let shared = members.iter().fold(first.name.len(), |shared, member| {
        let equal = first.name.bytes().zip(member.name.bytes()).take_while(|(a, b)| a == b);
        shared.min(equal.count())
    });
    let prefix = &first.name[..shared];
    match members.len() {
        1 => first.name.clone(),
        // Whole words.
        _ => prefix.rfind('_').map_or(prefix, |end| &prefix[..=end]).to_owned(),
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
