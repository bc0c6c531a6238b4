//! Content negotiation: the weights of `Accept` and `Accept-Encoding`.

use crate::compression::Coding;
use http::header::{ACCEPT_ENCODING, HeaderName};
use http::{HeaderMap, HeaderValue};

/// One item of such a header.
pub struct AcceptItem<'a> {
    pub name: &'a str,
    /// From 0 to 1; without a weight 1, with an unreadable one 0.
    pub weight: f64,
    parameters: &'a str,
}

impl<'a> AcceptItem<'a> {
    fn parse(item: &'a str) -> Self {
        let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
        let item = Self { name: name.trim(), weight: 1.0, parameters };
        let weight = item.parameter("q").map_or(1.0, |q| q.parse().unwrap_or(0.0));
        Self { weight, ..item }
    }

    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.parameters.split(';').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// The first header of each name. Cheaper than look-ups, which compute a hash each: most requests
/// have few headers.
pub fn find_headers<'a, const N: usize>(
    headers: &'a HeaderMap,
    names: [&HeaderName; N],
) -> [Option<&'a HeaderValue>; N] {
    let mut found = [None; N];
    for (name, value) in headers {
        if let Some(at) = names.iter().position(|wanted| *wanted == name) {
            found[at].get_or_insert(value);
        }
    }
    found
}

/// The items of all headers of this name.
pub fn accept_items(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = AcceptItem<'_>> {
    let values = headers.get_all(name).into_iter().filter_map(|v| v.to_str().ok());
    values.flat_map(|v| v.split(',')).map(AcceptItem::parse)
}

/// The coding of the highest weight in `Accept-Encoding`, the first of equals; `None` is identity.
pub fn accepted_coding(headers: &HeaderMap) -> Option<Coding> {
    const NAMES: [(&str, Option<Coding>); 3] =
        [("identity", None), ("gzip", Some(Coding::Gzip)), ("deflate", Some(Coding::Deflate))];
    if let [None] = find_headers(headers, [&ACCEPT_ENCODING]) {
        return None;
    }
    let mut best = (0.0, None);
    for item in accept_items(headers, ACCEPT_ENCODING) {
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(item.name));
        if let Some((_, coding)) = known
            && item.weight > best.0
        {
            best = (item.weight, *coding);
        }
    }
    best.1
}

#[cfg(test)]
#[path = "accept_tests.rs"]
mod tests;
