//! The order of backends' version texts, and which of them a wanted version means.
//!
//! Frameworks do not agree on one scheme ("1.31.1", "2024.1-rc2", "0.4+cuda12"), so this is no scheme but an order on
//! all texts: numbers count as numbers, letters mark what came before ("1.0-rc1" is older than "1.0"), and what
//! follows a plus is newer than nothing.

use std::cmp::Ordering;

/// A piece of a version. Older pieces come first: a letter is older than the end, a number newer.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece<'a> {
    Letters(&'a str),
    End,
    /// What follows a plus.
    Build,
    /// Without leading zeros: how many digits, then which, so that no number is too large.
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

/// Whether `a` is older or newer than `b`. Equal only if the texts are equal.
pub fn compare(a: &str, b: &str) -> Ordering {
    pieces(a).cmp(pieces(b)).then_with(|| a.cmp(b))
}

/// Whether somebody who wants version `wanted` may get `version`: the same, or a more exact one ("1.31" means 1.31.1
/// too, not 1.310).
pub fn fits(version: &str, wanted: &str) -> bool {
    version
        .strip_prefix(wanted)
        .is_some_and(|rest| !wanted.is_empty() && !rest.starts_with(|c: char| c.is_alphanumeric()))
}

#[cfg(test)]
#[path = "version_tests.rs"]
mod tests;
