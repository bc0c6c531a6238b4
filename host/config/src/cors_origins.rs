//! `--http-cors-origin`: the origins whose pages may call the server from a browser.

const FLAG: &str = "--http-cors-origin";

/// Whose pages may read responses. An origin is compared as browsers write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsOrigins {
    Any,
    Listed(Vec<String>),
}

impl CorsOrigins {
    /// `None` without a value.
    ///
    /// # Errors
    /// A value that no browser sends as its origin, or `*` beside others.
    pub fn parse(values: &[String]) -> Result<Option<Self>, String> {
        match values {
            [] => Ok(None),
            [any] if any == "*" => Ok(Some(Self::Any)),
            values if values.iter().any(|value| value == "*") => {
                Err(format!("{FLAG}=* allows every origin and must be the only {FLAG}"))
            }
            values => {
                for value in values {
                    check_origin(value).map_err(|why| {
                        format!("{FLAG}={value}: {why}; expected SCHEME://HOST[:PORT], for example https://app.example.com, or *")
                    })?;
                }
                Ok(Some(Self::Listed(values.to_vec())))
            }
        }
    }

    pub fn allow(&self, origin: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Listed(origins) => origins.iter().any(|allowed| allowed.as_bytes() == origin),
        }
    }
}

/// Refuses what a browser would write in another way, since it would never be equal.
fn check_origin(text: &str) -> Result<(), &'static str> {
    if text == "null" {
        return Err("every file and every sandboxed page has the origin 'null'");
    }
    let (scheme, authority) = text.split_once("://").ok_or("it has no scheme")?;
    let is_scheme = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    if !scheme.starts_with(|c: char| c.is_ascii_lowercase()) || !scheme.bytes().all(is_scheme) {
        return Err("its scheme is not in lower case");
    }
    if authority.contains(['/', '?', '#']) {
        return Err("an origin has no path, not even a slash at its end");
    }
    if authority.contains('@') {
        return Err("an origin has no user name");
    }
    let is_host = |b: u8| b.is_ascii_graphic() && !b.is_ascii_uppercase();
    if !authority.bytes().all(is_host) {
        return Err("a host is in lower case and in ASCII (xn--...)");
    }
    // The colons within the brackets of an IPv6 address are part of the host.
    let after_bracket = authority.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match authority[after_bracket..].split_once(':') {
        Some((rest, port)) => (&authority[..after_bracket + rest.len()], Some(port)),
        None => (authority, None),
    };
    if host.is_empty() {
        return Err("it has no host");
    }
    match (scheme, port) {
        (_, None) => Ok(()),
        ("http", Some("80")) | ("https", Some("443")) => {
            Err("browsers leave out the port that is the scheme's default")
        }
        (_, Some(port)) => match port.parse::<u16>() {
            Ok(number) if number > 0 && !port.starts_with(['0', '+']) => Ok(()),
            _ => Err("its port is not a number from 1 to 65535"),
        },
    }
}

#[cfg(test)]
#[path = "cors_origins_tests.rs"]
mod tests;
