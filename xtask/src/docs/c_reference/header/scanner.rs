//! Divides a header, or the body of a structure, into comments, directives and declarations.

use crate::command::Result;

/// What stands between two declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    Semicolon,
    Comma,
}

#[derive(Debug, PartialEq)]
pub enum Piece {
    Comment(Comment),
    /// A line that begins with `#`.
    Directive(String),
    Text {
        /// Without comments and body, its white space as single spaces.
        code: String,
        /// What is between braces, comments included.
        body: Option<String>,
    },
}

#[derive(Debug, PartialEq)]
pub struct Comment {
    /// Paragraphs, each in one line, with empty lines between them.
    pub text: String,
    /// It is on the line on which the declaration before it ends.
    pub behind: bool,
    pub blank_follows: bool,
}

pub struct Scanner<'a> {
    rest: &'a str,
    /// Whether the rest begins on the line on which a declaration has ended.
    is_behind: bool,
    /// Comments within the last declaration, which belong to it.
    waiting: Vec<Comment>,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text, is_behind: false, waiting: Vec::new() }
    }

    /// # Errors
    /// A comment or a brace is not closed.
    pub fn next_piece(&mut self, separator: Separator) -> Result<Option<Piece>> {
        if let Some(comment) = self.waiting.pop() {
            return Ok(Some(Piece::Comment(comment)));
        }
        loop {
            let start = self.rest.trim_start();
            if self.rest[..self.rest.len() - start.len()].contains('\n') {
                self.is_behind = false;
            }
            self.rest = start;
            if start.is_empty() {
                return Ok(None);
            }
            if start.starts_with("/*") {
                return self.comment().map(Piece::Comment).map(Some);
            }
            if start.starts_with('#') {
                let line = self.directive();
                return Ok(Some(Piece::Directive(line)));
            }
            // The frame for C++.
            if let Some(inside) = start.strip_prefix("extern \"C\" {") {
                self.rest = inside;
            } else if let Some(outside) = start.strip_prefix('}') {
                self.rest = outside;
            } else {
                return self.declaration(separator).map(Some);
            }
        }
    }

    fn comment(&mut self) -> Result<Comment> {
        let Some((text, rest)) = self.rest[2..].split_once("*/") else {
            return Err(format!("a comment is not closed: {}", first_line(self.rest)));
        };
        self.rest = rest;
        let space = &rest[..rest.len() - rest.trim_start().len()];
        let blank_follows = space.matches('\n').count() > 1;
        Ok(Comment { text: paragraphs(text), behind: self.is_behind, blank_follows })
    }

    /// With the lines that a backslash continues.
    fn directive(&mut self) -> String {
        let mut line = String::new();
        loop {
            let (first, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.rest = rest;
            line.push_str(first);
            if !first.ends_with('\\') {
                return line;
            }
            line.push('\n');
        }
    }

    fn declaration(&mut self, separator: Separator) -> Result<Piece> {
        let end = match separator {
            Separator::Semicolon => ';',
            Separator::Comma => ',',
        };
        let whole = self.rest;
        let (mut code, mut body) = (String::new(), None);
        let mut parentheses = 0_u32;
        while let Some(c) = self.rest.chars().next() {
            if self.rest.starts_with("/*") {
                let comment = self.comment()?;
                self.waiting.push(Comment { behind: true, ..comment });
                continue;
            }
            if c == '{' {
                body = Some(self.body(whole)?);
                let is_function = code.contains('(');
                if is_function {
                    break;
                }
                code.push_str("{ }");
                continue;
            }
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                '(' => parentheses += 1,
                ')' => parentheses = parentheses.saturating_sub(1),
                _ => {}
            }
            if c == end && parentheses == 0 {
                break;
            }
            code.push(c);
        }
        self.waiting.reverse();
        self.is_behind = true;
        Ok(Piece::Text { code: code.split_whitespace().collect::<Vec<_>>().join(" "), body })
    }

    /// What is between the brace at which the rest begins and its counterpart.
    fn body(&mut self, whole: &str) -> Result<String> {
        let mut depth = 0;
        let (mut at, text) = (0, self.rest);
        while let Some(c) = text[at..].chars().next() {
            if text[at..].starts_with("/*") {
                let Some(end) = text[at..].find("*/") else { break };
                at += end + 2;
                continue;
            }
            at += c.len_utf8();
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &text[at..];
                return Ok(text[1..at - 1].to_owned());
            }
        }
        Err(format!("a brace is not closed: {}", first_line(whole)))
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The text of a comment without what stands at the beginning of its lines.
fn paragraphs(comment: &str) -> String {
    let mut paragraphs = vec![String::new()];
    for line in comment.lines() {
        let line = line.trim();
        let line = line.strip_prefix('*').unwrap_or(line).trim();
        match paragraphs.last_mut() {
            Some(last) if !line.is_empty() => {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(line);
            }
            Some(last) if !last.is_empty() => paragraphs.push(String::new()),
            _ => {}
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}
