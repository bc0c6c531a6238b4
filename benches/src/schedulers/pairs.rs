//! Passes of two things in turn, so that what else happens on the machine hits both.

use crate::Result;
use crate::load::Pass;
use crate::options::Options;
use crate::table::{median, spread};

#[derive(Default)]
pub struct Pairs {
    with: Vec<Pass>,
    without: Vec<Pass>,
}

/// A B, B A, A B, …: neither is always the first.
pub fn run(
    options: &Options,
    mut with: impl FnMut() -> Result<Pass>,
    mut without: impl FnMut() -> Result<Pass>,
) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    for number in 0..options.passes.max(3) {
        if number % 2 == 0 {
            pairs.with.push(with()?);
            pairs.without.push(without()?);
        } else {
            pairs.without.push(without()?);
            pairs.with.push(with()?);
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
        let ratio = |(with, without): (&Pass, &Pass)| number(with) / number(without);
        median(&self.with.iter().zip(&self.without).map(ratio).collect::<Vec<_>>())
    }

    /// How far the passes lie apart, of whichever is worse.
    pub fn spread(&self, number: fn(&Pass) -> f64) -> String {
        let spread = spread(&of(&self.with, number)).max(spread(&of(&self.without, number)));
        let mark = if spread > crate::serving::NOISY { "!" } else { "" };
        format!("{:.0} %{mark}", spread * 100.0)
    }
}
