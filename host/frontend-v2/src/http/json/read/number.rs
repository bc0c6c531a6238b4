//! Number tokens: JSON's grammar, and `NaN`, `Inf`, `Infinity`.

use super::{JsonReader, Result};

impl<'a> JsonReader<'a> {
    /// Checks a number and returns its token, `NaN` and infinities included.
    pub fn number(&mut self) -> Result<&'a [u8]> {
        let start = self.at;
        self.at += usize::from(self.text[self.at] == b'-');
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.at += self.digits(),
            Some(b'N') => {
                self.literal("NaN")?;
                return Ok(&self.text[start..self.at]);
            }
            Some(b'I') => {
                self.literal("Inf")?;
                if self.text.get(self.at) == Some(&b'i') {
                    self.literal("inity")?;
                }
                return Ok(&self.text[start..self.at]);
            }
            _ => return self.fault("Invalid value."),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            match self.digits() {
                0 => return self.fault("Miss fraction part in number."),
                count => self.at += count,
            }
        }
        let mut exponent = 0;
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            exponent = self.digits();
            if exponent == 0 {
                return self.fault("Miss exponent in number.");
            }
            self.at += exponent;
        }
        let token = &self.text[start..self.at];
        // Two hundred digits with an exponent of two digits are in range.
        if (exponent > 2 || token.len() > 200) && !is_finite(token) {
            self.at = start;
            return self.fault("Number too big to be stored in double.");
        }
        Ok(token)
    }

    /// The number of digits that come next.
    fn digits(&self) -> usize {
        self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count()
    }
}

fn is_finite(token: &[u8]) -> bool {
    std::str::from_utf8(token).ok().and_then(|t| t.parse::<f64>().ok()).is_some_and(f64::is_finite)
}
