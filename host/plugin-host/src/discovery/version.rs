//! Comparing version strings of backends, and matching them against a requested version.
//!
//! Frameworks use different schemes ("1.31.1", "2024.1-rc2", "0.4+cuda12"), so any two strings can
//! be compared: numbers compare by value, letters mark a pre-release ("1.0-rc1" is older than
//! "1.0"), and a build suffix after a plus is newer than none.

use std::cmp::Ordering;

/// A piece of a version, in ascending order: letters are older than the end, a number is newer.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece<'a> {
    Letters(&'a str),
    End,
    /// A plus: a build suffix follows.
    Build,
    /// Count of digits without leading zeros, then the digits: numbers of any size compare by
    /// value.
    Number(usize, &'a str),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let rest =
        text.strip_prefix(['v', 'V']).filter(|r| r.starts_with(|c: char| c.is_ascii_digit()));
    let mut rest = rest.unwrap_or(text);
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let kind = |c: char| (c.is_ascii_digit(), c.is_alphanumeric());
            let end = rest.find(|c| kind(c) != kind(first)).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(if kind(first).1 { end } else { first.len_utf8() });
            rest = after;
            if kind(first).0 {
                let digits = piece.trim_start_matches('0');
                return Some(Piece::Number(digits.len(), digits));
            }
            if kind(first).1 {
                return Some(Piece::Letters(piece));
            }
            if first == '+' {
                return Some(Piece::Build);
            }
        }
    })
    .chain([Piece::End])
}

/// Orders `a` and `b` by age. Equal only if the strings are equal.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    pieces(a).cmp(pieces(b)).then_with(|| a.cmp(b))
}

/// Whether `version` satisfies `requested`: it is the same, or more exact ("1.31" matches 1.31.1,
/// not 1.310).
pub fn matches_requested(version: &str, requested: &str) -> bool {
    version.strip_prefix(requested).is_some_and(|rest| {
        !requested.is_empty() && !rest.starts_with(|c: char| c.is_alphanumeric())
    })
}

#[cfg(test)]
#[path = "version_tests.rs"]
mod tests;
