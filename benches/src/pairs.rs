//! Passes of two things in turn, so that what else happens on the machine hits both.

use crate::Result;
use crate::load::Pass;
use crate::options::Options;
use crate::process::Process;
use crate::table::{Table, median, spread};
use std::time::Duration;

/// Measures rows on one server, so that neither of two models has the better place in memory or on the cores.
pub fn rows<R>(
    server: &Process,
    rows: &[R],
    table: &mut Table,
    name: impl Fn(&R) -> String,
    one: impl Fn(&R, &Process) -> Result<Vec<String>>,
) {
    for row in rows {
        match one(row, server) {
            Ok(cells) => table.row([vec![name(row)], cells].concat()),
            Err(problem) => table.failure(&name(row), &problem),
        }
    }
}

#[derive(Default)]
pub struct Pairs {
    with: Vec<Pass>,
    without: Vec<Pass>,
}

/// A B, B A, A B, …: neither is always the first. Each gets the length of a pass. Differences are smaller than
/// what other rows look for, so the passes are short and many.
pub fn run(
    options: &Options,
    mut with: impl FnMut(Duration) -> Result<Pass>,
    mut without: impl FnMut(Duration) -> Result<Pass>,
) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    let length = options.pass / 2;
    for number in 0..3 * options.passes {
        if number % 2 == 0 {
            pairs.with.push(with(length)?);
            pairs.without.push(without(length)?);
        } else {
            pairs.without.push(without(length)?);
            pairs.with.push(with(length)?);
        }
    }
    Ok(pairs)
}

fn of(passes: &[Pass], number: fn(&Pass) -> f64) -> Vec<f64> {
    passes.iter().map(number).collect()
}

impl Pairs {
    /// The medians.
    pub fn both(&self, number: fn(&Pass) -> f64) -> (f64, f64) {
        (median(&of(&self.with, number)), median(&of(&self.without, number)))
    }

    /// With over without, of passes that are neighbours; the median.
    pub fn ratio(&self, number: fn(&Pass) -> f64) -> f64 {
        self.neighbours(|with, without| number(with) / number(without))
    }

    /// With less without, of passes that are neighbours; the median.
    pub fn difference(&self, number: fn(&Pass) -> f64) -> f64 {
        self.neighbours(|with, without| number(with) - number(without))
    }

    fn neighbours(&self, compare: impl Fn(&Pass, &Pass) -> f64) -> f64 {
        let pairs = self.with.iter().zip(&self.without);
        median(&pairs.map(|(with, without)| compare(with, without)).collect::<Vec<_>>())
    }

    /// How far the passes lie apart, of whichever is worse.
    pub fn spread(&self, number: fn(&Pass) -> f64) -> String {
        let spread = spread(&of(&self.with, number)).max(spread(&of(&self.without, number)));
        let mark = if spread > crate::serving::NOISY { "!" } else { "" };
        format!("{:.0} %{mark}", spread * 100.0)
    }
}
