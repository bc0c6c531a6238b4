//! Cuts protobuf text into names, numbers, strings and signs.
//!
//! Tokens are byte ranges; lines and columns are counted only once something is wrong.
use std::borrow::Cow;

/// What is wrong, and at which byte.
#[derive(Debug)]
pub(super) struct SyntaxFault {
    pub at: usize,
    pub message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenShape {
    Name,
    Number,
    /// With its quotes, and escapes as they were typed.
    Text,
    Sign(u8),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TextToken {
    pub shape: TokenShape,
    pub start: usize,
    pub end: usize,
}

pub(super) struct TextLexer<'a> {
    text: &'a str,
    at: usize,
    ahead: Option<TextToken>,
}

impl<'a> TextLexer<'a> {
    pub fn new(text: &'a str) -> Self {
        // Editors on Windows like to put a byte order mark first.
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { text, at, ahead: None }
    }

    pub fn slice(&self, token: TextToken) -> &'a str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    pub fn peek(&mut self) -> Result<TextToken, SyntaxFault> {
        if let Some(token) = self.ahead {
            return Ok(token);
        }
        let token = self.cut()?;
        self.ahead = Some(token);
        Ok(token)
    }

    pub fn next(&mut self) -> Result<TextToken, SyntaxFault> {
        let token = self.peek()?;
        self.ahead = None;
        Ok(token)
    }

    /// Takes the sign if it comes next.
    pub fn skip(&mut self, sign: u8) -> Result<bool, SyntaxFault> {
        let here = self.peek()?.shape == TokenShape::Sign(sign);
        if here {
            self.ahead = None;
        }
        Ok(here)
    }

    /// The token as a message names it.
    pub fn show(&self, token: TextToken) -> String {
        let text = self.slice(token);
        let short = match text.char_indices().nth(40) {
            Some((cut, _)) => format!("{}...", &text[..cut]),
            None => text.to_owned(),
        };
        match token.shape {
            TokenShape::End => "the end of the text".to_owned(),
            TokenShape::Text => format!("the string {short}"),
            TokenShape::Number => format!("the number {short}"),
            TokenShape::Name | TokenShape::Sign(_) => format!("'{short}'"),
        }
    }

    fn cut(&mut self) -> Result<TextToken, SyntaxFault> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c) => self.at += 1,
                Some(b'#') => {
                    let rest = bytes.get(self.at..).unwrap_or_default();
                    self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                _ => break,
            }
        }
        let start = self.at;
        let digit_after = bytes.get(start + 1).is_some_and(u8::is_ascii_digit);
        let shape = match bytes.get(start) {
            None => TokenShape::End,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                self.run(|_, b| b.is_ascii_alphanumeric() || b == b'_');
                TokenShape::Name
            }
            Some(b'0'..=b'9') => self.number(),
            Some(b'.') if digit_after => self.number(),
            Some(&quote @ (b'"' | b'\'')) => {
                self.quoted(quote)?;
                TokenShape::Text
            }
            Some(&sign) if sign.is_ascii_graphic() => {
                self.at += 1;
                TokenShape::Sign(sign)
            }
            Some(_) => {
                let found = self.text.get(start..).and_then(|t| t.chars().next());
                let found = found.unwrap_or_default();
                let message = format!("{found:?} may stand only in strings and comments");
                return Err(SyntaxFault { at: start, message });
            }
        };
        Ok(TextToken { shape, start, end: self.at })
    }

    /// Moves on while `more(byte before, byte)` holds, beginning with the second byte.
    fn run(&mut self, more: impl Fn(u8, u8) -> bool) {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let (Some(&before), Some(&byte)) = (bytes.get(self.at - 1), bytes.get(self.at)) {
            if !more(before, byte) {
                break;
            }
            self.at += 1;
        }
    }

    /// Takes everything that could belong to a number; the parser says what is wrong with it.
    fn number(&mut self) -> TokenShape {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let hex = rest.starts_with(b"0x") || rest.starts_with(b"0X");
        self.run(|before, byte| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'.' | b'_')
                || (!hex && matches!(before, b'e' | b'E') && matches!(byte, b'+' | b'-'))
        });
        TokenShape::Number
    }

    fn quoted(&mut self, quote: u8) -> Result<(), SyntaxFault> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at += 1;
        loop {
            match bytes.get(self.at) {
                Some(&b) if b == quote => break,
                // An escaped line end does not continue a string.
                Some(b'\\') if bytes.get(self.at + 1).is_some_and(|b| *b != b'\n') => self.at += 2,
                None | Some(b'\n' | b'\\') => {
                    let quote = char::from(quote);
                    let message = format!("the string has no closing {quote} on its line");
                    return Err(SyntaxFault { at: start, message });
                }
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The bytes a string token stands for.
    pub fn unescape(&self, token: TextToken) -> Result<Cow<'a, [u8]>, SyntaxFault> {
        let first = token.start + 1;
        let inner = self.text.get(first..token.end.saturating_sub(1)).unwrap_or_default();
        if memchr_backslash(inner).is_none() {
            return Ok(Cow::Borrowed(inner.as_bytes()));
        }
        let mut out = Vec::with_capacity(inner.len());
        let mut rest = inner;
        while let Some(cut) = memchr_backslash(rest) {
            out.extend_from_slice(rest.get(..cut).unwrap_or_default().as_bytes());
            let at = first + (inner.len() - rest.len()) + cut;
            let typed = rest.get(cut + 1..).unwrap_or_default();
            let used =
                read_escape(typed, &mut out).map_err(|message| SyntaxFault { at, message })?;
            rest = typed.get(used..).unwrap_or_default();
        }
        out.extend_from_slice(rest.as_bytes());
        Ok(Cow::Owned(out))
    }
}

fn memchr_backslash(text: &str) -> Option<usize> {
    text.bytes().position(|b| b == b'\\')
}

/// Reads one escape behind its backslash; returns how many bytes it took.
fn read_escape(typed: &str, out: &mut Vec<u8>) -> Result<usize, String> {
    let Some(letter) = typed.chars().next() else {
        return Err("nothing follows the backslash".to_owned());
    };
    let digits = |skip: usize, most: usize, radix: u32| {
        let digits = typed.bytes().skip(skip).take(most);
        let count = digits.take_while(|b| char::from(*b).is_digit(radix)).count();
        let value = u32::from_str_radix(typed.get(skip..skip + count).unwrap_or_default(), radix);
        (count, value.unwrap_or_default())
    };
    let plain = match letter {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' | '\'' | '"' | '?' => letter as u8,
        '0'..='7' => {
            let (count, value) = digits(0, 3, 8);
            let byte = u8::try_from(value);
            out.push(byte.map_err(|_| format!("\\{value:o} is more than a byte can hold"))?);
            return Ok(count);
        }
        'x' | 'X' => {
            let (count, value) = digits(1, 2, 16);
            if count == 0 {
                return Err(format!("hexadecimal digits must follow \\{letter}"));
            }
            out.push(value as u8);
            return Ok(1 + count);
        }
        'u' | 'U' => {
            let want = if letter == 'u' { 4 } else { 8 };
            let (count, value) = digits(1, want, 16);
            if count < want {
                return Err(format!("{want} hexadecimal digits must follow \\{letter}"));
            }
            let Some(character) = char::from_u32(value) else {
                return Err(format!("{value:#x} is not a Unicode character"));
            };
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(1 + count);
        }
        other => return Err(format!("\\{other} is not an escape")),
    };
    out.push(plain);
    Ok(1)
}
