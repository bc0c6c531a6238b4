//! Protobuf text to encoded messages, guided by the schema.
//!
//! Values go straight to wire bytes, so a request head is read once as text and once by its
//! generated decoder, with no tree in between. Recursion follows the schema, in which no message
//! contains itself, so hostile text cannot make the stack deep.
use std::borrow::Cow;

use super::lexer::{SyntaxFault, TextLexer, TextToken, TokenShape};
use super::nearest_name;
use super::old_names::{self, OldNameMeaning};
use super::places::PlaceRecorder;
use crate::message_tree::{put_sized, put_tag};
use crate::schema::{Enum, FieldKind, FieldSchema, MessageSchema};
use trtserver_proto_wire::put_varint;

pub(super) struct TextParser<'a> {
    text: &'a str,
    lexer: TextLexer<'a>,
    /// Set if the places of fields are asked for.
    places: Option<PlaceRecorder>,
}

/// The field being read: what it is, and how and where the text names it.
struct NamedField<'a> {
    field: &'static FieldSchema,
    spelled: &'a str,
    at: usize,
    /// Old spellings of its values.
    values: &'static [(&'static str, &'static str)],
}

/// An opened message and the sign that ends it; the outermost one ends with the text.
struct OpenMessage<'a> {
    name: &'a str,
    at: usize,
    close: u8,
}

fn syntax_fault<T>(at: usize, message: String) -> Result<T, SyntaxFault> {
    Err(SyntaxFault { at, message })
}

impl<'a> TextParser<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, lexer: TextLexer::new(text), places: None }
    }

    /// Records the place of every value in `places`.
    pub fn with_places(text: &'a str) -> Self {
        Self { places: Some(PlaceRecorder::default()), ..Self::new(text) }
    }

    /// Appends the encoded message.
    pub fn run_into(
        mut self,
        message: &'static MessageSchema,
        out: &mut Vec<u8>,
    ) -> Result<(), SyntaxFault> {
        self.message(message, None, out)
    }

    /// The encoded message, and the recorded places.
    pub fn run_with_places(
        mut self,
        message: &'static MessageSchema,
    ) -> Result<(Vec<u8>, PlaceRecorder), SyntaxFault> {
        let mut out = Vec::with_capacity(self.text.len());
        self.message(message, None, &mut out)?;
        Ok((out, self.places.unwrap_or_default()))
    }

    fn message(
        &mut self,
        message: &'static MessageSchema,
        open: Option<&OpenMessage>,
        out: &mut Vec<u8>,
    ) -> Result<(), SyntaxFault> {
        let mut seen = 0;
        loop {
            let token = self.lexer.next()?;
            match (token.shape, open) {
                (TokenShape::End, None) => return Ok(()),
                (TokenShape::Sign(sign), Some(open)) if sign == open.close => return Ok(()),
                (TokenShape::Name, _) => self.field(message, token, &mut seen, out)?,
                _ => return self.no_field(open, token),
            }
            if !self.lexer.skip(b',')? {
                self.lexer.skip(b';')?;
            }
        }
    }

    fn no_field<T>(&self, open: Option<&OpenMessage>, token: TextToken) -> Result<T, SyntaxFault> {
        let found = self.lexer.show(token);
        let message = match open {
            Some(open) => format!(
                "expected a field name or the '{}' that closes {} of line {}, found {found}",
                char::from(open.close),
                open.name,
                super::line_and_column(self.text, open.at).0,
            ),
            None => format!("expected a field name, found {found}"),
        };
        syntax_fault(token.start, message)
    }

    fn field(
        &mut self,
        message: &'static MessageSchema,
        token: TextToken,
        seen: &mut u64,
        out: &mut Vec<u8>,
    ) -> Result<(), SyntaxFault> {
        let spelled = self.lexer.slice(token);
        let (mut name, mut values): (&str, &[_]) = (spelled, &[]);
        let mut set = None;
        if let Some(old) = old_names::find_old_name(message.name, spelled) {
            match old.now {
                OldNameMeaning::Field(now) => (name, values) = (now, old.values),
                OldNameMeaning::Dropped(kind) => return self.dropped(spelled, kind),
                OldNameMeaning::Set { checked, field, value } => {
                    (name, set) = (field, Some((checked, value)))
                }
            }
        }
        let Some((place, field)) = message.field(name) else {
            let near = nearest_name(spelled, message.fields.iter().map(|f| f.name));
            return syntax_fault(
                token.start,
                format!("{} has no field {spelled}{near}", message.name),
            );
        };
        if !field.repeated {
            if *seen & (1 << place) != 0 {
                return syntax_fault(token.start, format!("{spelled} is given twice"));
            }
            if let Some(oneof) = field.oneof {
                let other = message.fields.iter().enumerate();
                let mut other =
                    other.filter(|(p, f)| f.oneof == Some(oneof) && *seen & (1 << p) != 0);
                if let Some((_, other)) = other.next() {
                    let other = other.name;
                    let message = format!("{spelled} and {other} exclude each other ({oneof})");
                    return syntax_fault(token.start, message);
                }
            }
            *seen |= 1 << place;
        }

        if let Some((checked, value)) = set {
            self.dropped(spelled, checked)?;
            put_tag(out, field);
            put_varint(out, value);
            return Ok(());
        }
        let named = NamedField { field, spelled, at: token.start, values };
        let is_message = matches!(field.kind, FieldKind::Message(_));
        if !self.lexer.skip(b':')? && !is_message {
            let token = self.lexer.peek()?;
            let found = self.lexer.show(token);
            return syntax_fault(token.start, format!("{spelled}: expected ':', found {found}"));
        }
        if field.repeated && self.lexer.skip(b'[')? {
            return self.list(&named, out);
        }
        self.value(&named, out)
    }

    fn list(&mut self, named: &NamedField, out: &mut Vec<u8>) -> Result<(), SyntaxFault> {
        if self.lexer.skip(b']')? {
            return Ok(());
        }
        loop {
            let at = self.lexer.peek()?.start;
            self.value(&NamedField { at, ..*named }, out)?;
            let token = self.lexer.next()?;
            match token.shape {
                TokenShape::Sign(b']') => return Ok(()),
                TokenShape::Sign(b',') => {}
                _ => {
                    let (name, found) = (named.spelled, self.lexer.show(token));
                    let message = format!("{name}: expected ',' or ']', found {found}");
                    return syntax_fault(token.start, message);
                }
            }
        }
    }

    fn value(&mut self, named: &NamedField, out: &mut Vec<u8>) -> Result<(), SyntaxFault> {
        let name = named.spelled;
        if let Some(places) = &mut self.places {
            places.open(named.field.name, named.at);
        }
        put_tag(out, named.field);
        match named.field.kind {
            FieldKind::Message(inner) => {
                let token = self.lexer.next()?;
                let close = match token.shape {
                    TokenShape::Sign(b'{') => b'}',
                    TokenShape::Sign(b'<') => b'>',
                    _ => return self.wrong(name, "'{'", token),
                };
                let open = OpenMessage { name, at: named.at, close };
                put_sized(out, |out| self.message(inner, Some(&open), out))?;
            }
            FieldKind::String | FieldKind::Bytes => {
                let start = self.lexer.peek()?.start;
                let mut bytes = self.string(name)?;
                if matches!(named.field.kind, FieldKind::String)
                    && std::str::from_utf8(&bytes).is_err()
                {
                    let message = format!("{name}: the escapes of this string do not make UTF-8");
                    return syntax_fault(start, message);
                }
                if let Some((_, now)) =
                    named.values.iter().find(|(old, _)| old.as_bytes() == &*bytes)
                {
                    bytes = Cow::Borrowed(now.as_bytes());
                }
                if let Some(places) = &mut self.places {
                    places.text(&bytes);
                }
                put_varint(out, bytes.len() as u64);
                out.extend_from_slice(&bytes);
            }
            FieldKind::Float => {
                let value = self.real::<f32>(name, f32::NAN, f32::INFINITY)?;
                out.extend_from_slice(&value.to_le_bytes());
            }
            FieldKind::Double => {
                let value = self.real::<f64>(name, f64::NAN, f64::INFINITY)?;
                out.extend_from_slice(&value.to_le_bytes());
            }
            kind => {
                let value = self.whole(name, kind)?;
                put_varint(out, value);
            }
        }
        if let Some(places) = &mut self.places {
            places.close();
        }
        Ok(())
    }

    /// Reads the value of a field that no longer exists.
    fn dropped(&mut self, name: &str, kind: FieldKind) -> Result<(), SyntaxFault> {
        if !self.lexer.skip(b':')? {
            let found = self.lexer.peek()?;
            return self.wrong(name, "':'", found);
        }
        match kind {
            FieldKind::String => self.string(name).map(drop),
            _ => self.whole(name, kind).map(drop),
        }
    }

    fn wrong<T>(&self, name: &str, expected: &str, token: TextToken) -> Result<T, SyntaxFault> {
        let found = self.lexer.show(token);
        syntax_fault(token.start, format!("{name}: expected {expected}, found {found}"))
    }

    /// One string, or several that stand next to each other.
    fn string(&mut self, name: &str) -> Result<Cow<'a, [u8]>, SyntaxFault> {
        let token = self.lexer.next()?;
        if token.shape != TokenShape::Text {
            return self.wrong(name, "a quoted string", token);
        }
        let mut all = self.lexer.unescape(token)?;
        while self.lexer.peek()?.shape == TokenShape::Text {
            let token = self.lexer.next()?;
            all.to_mut().extend_from_slice(&self.lexer.unescape(token)?);
        }
        Ok(all)
    }

    fn real<T>(&mut self, name: &str, nan: T, infinity: T) -> Result<T, SyntaxFault>
    where
        T: std::str::FromStr + std::ops::Neg<Output = T>,
    {
        let minus = self.lexer.skip(b'-')?;
        let token = self.lexer.next()?;
        let text = self.lexer.slice(token);
        // Refused rather than read as decimal: in protobuf text a leading zero means octal.
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let octal = digits && text.len() > 1 && text.starts_with('0');
        let value = match token.shape {
            TokenShape::Name if text.eq_ignore_ascii_case("nan") => nan,
            TokenShape::Name
                if ["inf", "infinity"].iter().any(|i| text.eq_ignore_ascii_case(i)) =>
            {
                infinity
            }
            TokenShape::Number if !octal => {
                match text.strip_suffix(['f', 'F']).unwrap_or(text).parse() {
                    Ok(value) => value,
                    Err(_) => return self.wrong(name, "a number", token),
                }
            }
            _ => return self.wrong(name, "a number", token),
        };
        Ok(if minus { -value } else { value })
    }

    /// An integer, bool or enum, as its varint.
    fn whole(&mut self, name: &str, kind: FieldKind) -> Result<u64, SyntaxFault> {
        let minus = self.lexer.peek()?;
        let negative = self.lexer.skip(b'-')?;
        let token = self.lexer.next()?;
        let start = if negative { minus.start } else { token.start };
        let text = self.lexer.slice(token);
        match (kind, token.shape) {
            (FieldKind::Bool, TokenShape::Name) if !negative => match text {
                "true" | "True" | "t" => return Ok(1),
                "false" | "False" | "f" => return Ok(0),
                _ => {}
            },
            (FieldKind::Enum(each), TokenShape::Name) if !negative => {
                return self.choice(each, name, token);
            }
            _ => {}
        }
        let (expected, least, most): (_, i128, i128) = match kind {
            FieldKind::Bool => ("true or false".into(), 0, 1),
            FieldKind::Enum(each) => {
                (format!("a {}", each.name).into(), i32::MIN.into(), i32::MAX.into())
            }
            FieldKind::Int32 => ("an integer".into(), i32::MIN.into(), i32::MAX.into()),
            FieldKind::UInt32 => ("an integer".into(), 0, u32::MAX.into()),
            FieldKind::UInt64 => ("an integer".into(), 0, u64::MAX.into()),
            _ => (Cow::from("an integer"), i64::MIN.into(), i64::MAX.into()),
        };
        if token.shape != TokenShape::Number {
            return self.wrong(name, &expected, token);
        }
        let Some(size) = parse_integer(text) else { return self.wrong(name, &expected, token) };
        let value = size.map(|size| if negative { -i128::from(size) } else { size.into() });
        match value.filter(|v| (least..=most).contains(v)) {
            Some(value) => Ok(value as u64),
            None => {
                let minus = if negative { "-" } else { "" };
                let message = format!("{name}: {minus}{text} is not between {least} and {most}");
                syntax_fault(start, message)
            }
        }
    }

    fn choice(&self, each: &Enum, name: &str, token: TextToken) -> Result<u64, SyntaxFault> {
        let text = self.lexer.slice(token);
        match each.number(text) {
            Some(number) => Ok(i64::from(number) as u64),
            None => {
                let names = || each.values.iter().map(|v| v.0);
                let mut near = nearest_name(text, names());
                if near.is_empty() {
                    near = format!("; its values are {}", names().collect::<Vec<_>>().join(", "));
                }
                syntax_fault(
                    token.start,
                    format!("{name}: {} has no value {text}{near}", each.name),
                )
            }
        }
    }
}

/// Decimal, hexadecimal or octal. `None`: not an integer; `Some(None)`: too large for any field.
fn parse_integer(text: &str) -> Option<Option<u64>> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some(u64::from_str_radix(digits, radix).ok())
}
