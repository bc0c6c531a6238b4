//! The file of `--auth-file`: a line for each name, with how its holder is known, what it may do,
//! and its limits.
//!
//! ```text
//! NAME CREDENTIALS SCOPE... [rate=N] [in-flight=N]
//! ```

use super::auth_scope::AccessScope;
use std::collections::BTreeSet;

/// The name of callers without a token or a certificate that the file knows.
pub const ANONYMOUS: &str = "anonymous";
/// Larger files are refused unread.
pub const MAX_AUTH_FILE: u64 = 4 << 20;

/// The SHA-256 of nothing: of a token that was lost before it was hashed.
const EMPTY_HASH: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// A file that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AuthFile {
    pub names: Vec<AuthName>,
}

/// A line of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct AuthName {
    pub name: String,
    /// None of [`ANONYMOUS`].
    pub credentials: Vec<AuthCredential>,
    pub scopes: Vec<AccessScope>,
    /// Requests a second.
    pub rate: Option<u32>,
    /// Requests at a time.
    pub in_flight: Option<u32>,
}

/// How the holder of a name is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuthCredential {
    /// The SHA-256 of a token.
    Token([u8; 32]),
    /// A name in a client's certificate.
    Certificate(CertificateName),
}

/// A subject alternative name of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertificateName {
    /// In lower case.
    Dns(String),
    Uri(String),
    Email(String),
}

impl AuthFile {
    /// # Errors
    /// The line that is wrong, and what was expected. `path` is for the text.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| format!("auth file {path}: expected text in UTF-8"))?;
        let mut file = Self::default();
        let (mut names, mut credentials) = (BTreeSet::new(), BTreeSet::new());
        for (number, line) in (1..).zip(text.lines()) {
            let at = |e: String| format!("auth file {path}, line {number}: {e}");
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let name = AuthName::parse(line).map_err(at)?;
            if !names.insert(name.name.clone()) {
                return Err(at(format!("name '{}' has a line already", name.name)));
            }
            for credential in &name.credentials {
                if !credentials.insert(credential.clone()) {
                    let e = format!("a credential of name '{}' is on another line too", name.name);
                    return Err(at(e));
                }
            }
            file.names.push(name);
        }
        if file.names.is_empty() {
            return Err(format!(
                "auth file {path}: expected a line NAME CREDENTIALS SCOPE..., found none"
            ));
        }
        Ok(file)
    }
}

impl AuthName {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let (Some(name), Some(credentials)) = (words.next(), words.next()) else {
            return Err("expected NAME CREDENTIALS SCOPE..., found one word".to_owned());
        };
        if name.chars().any(char::is_control) {
            return Err("the name has control characters".to_owned());
        }
        let (mut scopes, mut rate, mut in_flight) = (Vec::new(), None, None);
        for word in words {
            let limit = word.split_once('=');
            match limit {
                Some(("rate", number)) => set_limit("rate", &mut rate, number)?,
                Some(("in-flight", number)) => set_limit("in-flight", &mut in_flight, number)?,
                _ => scopes.push(AccessScope::parse(word)?),
            }
        }
        if scopes.is_empty() {
            return Err(format!(
                "name '{name}' has no scope: expected ACCESS[:GROUPS[:MODELS]], such as read,infer:*:vision-*"
            ));
        }
        let credentials = read_credentials(name, credentials)?;
        Ok(Self { name: name.to_owned(), credentials, scopes, rate, in_flight })
    }
}

fn set_limit(what: &str, limit: &mut Option<u32>, text: &str) -> Result<(), String> {
    match text.parse() {
        Ok(number @ 1..) if limit.is_none() => *limit = Some(number),
        Ok(1..) => return Err(format!("{what} is given twice")),
        _ => return Err(format!("{what}={text}: expected a number of at least 1")),
    }
    Ok(())
}

/// A list with commas.
fn read_credentials(name: &str, text: &str) -> Result<Vec<AuthCredential>, String> {
    match (name == ANONYMOUS, text == "-") {
        (true, true) => return Ok(Vec::new()),
        (true, false) => {
            return Err(format!("'{ANONYMOUS}' has no credentials: expected - in their place"));
        }
        (false, true) => {
            return Err(format!(
                "name '{name}' has no credentials: only '{ANONYMOUS}' may have none"
            ));
        }
        (false, false) => {}
    }
    text.split(',').map(read_credential).collect()
}

/// The text is not shown in errors: it may be a token that was written in place of its hash.
fn read_credential(text: &str) -> Result<AuthCredential, String> {
    let of_certificate = |name| Ok(AuthCredential::Certificate(name));
    match text.split_once(':') {
        Some(("dns", name)) if !name.is_empty() => {
            of_certificate(CertificateName::Dns(name.to_ascii_lowercase()))
        }
        Some(("uri", uri)) if !uri.is_empty() => {
            of_certificate(CertificateName::Uri(uri.to_owned()))
        }
        Some(("email", address)) if !address.is_empty() => {
            of_certificate(CertificateName::Email(address.to_owned()))
        }
        _ => read_hash(text.strip_prefix("sha256:").unwrap_or(text))
            .filter(|hash| *hash != EMPTY_HASH)
            .map(AuthCredential::Token)
            .ok_or_else(|| {
                "a credential cannot be read: expected the SHA-256 of a token that is not empty as 64 hexadecimal digits, or dns:NAME, \
                 uri:URI or email:ADDRESS of a certificate"
                    .to_owned()
            }),
    }
}

fn read_hash(text: &str) -> Option<[u8; 32]> {
    let bytes = text.as_bytes();
    if bytes.len() != 64 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(bytes.chunks(2)) {
        *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
#[path = "auth_file_tests.rs"]
mod tests;
