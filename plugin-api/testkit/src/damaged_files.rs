//! Damaged copies of a model file: a backend refuses or loads each, and never ends the process.
//!
//! A child process tries them, so that a file that ends it is found by its name.

use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Numbers that look random and are the same in each run.
#[derive(Clone, Debug)]
pub struct SeededNumbers(u64);

impl SeededNumbers {
    /// Equal seeds give equal files.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, from 0 up to `n`, exclusive; 0 for none.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// A copy without a part, with a part twice, without its end, or with a few bytes changed. Of a
/// `textual` file digits may be changed instead, which keeps the syntax and changes an index or a
/// length.
pub fn damage_bytes(bytes: &[u8], textual: bool, numbers: &mut SeededNumbers) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let (at, n) = (numbers.below(out.len()), 1 + numbers.below(40));
    let end = (at + n).min(out.len());
    match numbers.below(if textual { 5 } else { 4 }) {
        0 => drop(out.drain(at..end)),
        1 => {
            let part = out[at..end].to_vec();
            out.splice(at..at, part);
        }
        2 => out.truncate(at),
        3 if textual => {
            let digits: Vec<usize> =
                (0..out.len()).filter(|at| out[*at].is_ascii_digit()).collect();
            for _ in 0..1 + numbers.below(4) {
                if let Some(at) = digits.get(numbers.below(digits.len())) {
                    out[*at] = b'0' + numbers.below(10) as u8;
                }
            }
        }
        _ => {
            for _ in 0..1 + numbers.below(3) {
                let at = numbers.below(out.len());
                if let Some(byte) = out.get_mut(at) {
                    *byte = numbers.below(256) as u8;
                }
            }
        }
    }
    out
}

/// Runs `test` of this test program in children, with the name of `folder` in the environment
/// variable `variable`, until it has tried and removed all files that `list` finds there, in that
/// order. Returns the files that ended a child, and how.
///
/// # Errors
/// A child ended well and left files; a file cannot be removed; the program cannot be started.
pub fn find_fatal_files(
    (test, variable): (&str, &str),
    folder: &Path,
    list: impl Fn(&Path) -> Vec<PathBuf>,
) -> Result<Vec<String>> {
    let mut fatal = Vec::new();
    loop {
        let mut child = Command::new(std::env::current_exe()?);
        child.args(["--exact", test, "--nocapture"]).env(variable, folder);
        let ended = child.output()?;
        let Some(first) = list(folder).into_iter().next() else { return Ok(fatal) };
        if ended.status.success() {
            return Err(Error::other(format!("the child left {}", first.display())));
        }
        fatal.push(format!("{}: {}", first.display(), ended.status));
        fs::remove_file(first)?;
    }
}

#[cfg(test)]
#[path = "damaged_files_tests.rs"]
mod tests;
