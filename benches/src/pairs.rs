//! Alternating passes of two variants, so that other load on the machine affects both.

use crate::Result;
use crate::load::Pass;
use crate::options::Options;
use crate::process::Process;
use crate::table::{Table, median, spread, verdict};
use std::time::Duration;

/// Measures both variants on one server, so that neither has better memory or core placement.
pub fn rows<R>(
    server: &Process,
    rows: &[R],
    table: &mut Table,
    name: impl Fn(&R) -> String,
    one: impl Fn(&R, &Process) -> Result<Vec<String>>,
) {
    for row in rows {
        table.measured(name(row), one(row, server));
    }
}

/// Columns of a table that compares a feature with a server without it. `feature` names the rows.
pub const fn columns(feature: &'static str) -> [&'static str; 10] {
    [feature, "req/s", "without", "ratio", "CPU µs/req", "without", "ratio", "spread", "target", ""]
}

#[derive(Default)]
pub struct Pairs {
    with: Vec<Pass>,
    without: Vec<Pass>,
}

/// Many short passes: differences are smaller than in other rows.
pub fn run(
    options: &Options,
    with: impl FnMut(Duration) -> Result<Pass>,
    without: impl FnMut(Duration) -> Result<Pass>,
) -> Result<Pairs> {
    alternate(3 * options.passes, options.pass / 2, with, without)
}

/// A B, B A, A B, …: neither is always first.
pub fn alternate(
    count: usize,
    length: Duration,
    mut with: impl FnMut(Duration) -> Result<Pass>,
    mut without: impl FnMut(Duration) -> Result<Pass>,
) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    for number in 0..count {
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

fn pass_numbers(passes: &[Pass], number: fn(&Pass) -> f64) -> Vec<f64> {
    passes.iter().map(number).collect()
}

impl Pairs {
    /// The cells under the [`columns`] between the name and the spread.
    pub fn cells(&self) -> Vec<String> {
        let (rate, rate_without) = self.both(|pass| pass.per_second);
        let (cpu, cpu_without) = self.both(|pass| pass.cpu_us);
        vec![
            format!("{rate:.0}"),
            format!("{rate_without:.0}"),
            format!("{:.3}", self.ratio(|pass| pass.per_second)),
            format!("{cpu:.2}"),
            format!("{cpu_without:.2}"),
            format!("{:.3}", self.ratio(|pass| pass.cpu_us)),
        ]
    }

    /// All cells of a row that is judged by its CPU time: at most `limit` times that without.
    pub fn cpu_cells(&self, limit: f64) -> Vec<String> {
        let mut cells = self.cells();
        cells.extend([
            self.spread(|pass| pass.cpu_us),
            format!("CPU <={limit}"),
            verdict(self.ratio(|pass| pass.cpu_us) <= limit).to_owned(),
        ]);
        cells
    }

    /// The medians.
    pub fn both(&self, number: fn(&Pass) -> f64) -> (f64, f64) {
        (median(&pass_numbers(&self.with, number)), median(&pass_numbers(&self.without, number)))
    }

    /// Median ratio of neighbouring passes, with over without.
    pub fn ratio(&self, number: fn(&Pass) -> f64) -> f64 {
        self.neighbours(|with, without| number(with) / number(without))
    }

    /// Median difference of neighbouring passes, with minus without.
    pub fn difference(&self, number: fn(&Pass) -> f64) -> f64 {
        self.neighbours(|with, without| number(with) - number(without))
    }

    fn neighbours(&self, compare: impl Fn(&Pass, &Pass) -> f64) -> f64 {
        let pairs = self.with.iter().zip(&self.without);
        median(&pairs.map(|(with, without)| compare(with, without)).collect::<Vec<_>>())
    }

    /// Spread of the passes, the larger of the two.
    pub fn spread(&self, number: fn(&Pass) -> f64) -> String {
        let spread = spread(&pass_numbers(&self.with, number))
            .max(spread(&pass_numbers(&self.without, number)));
        let mark = if spread > crate::serving::NOISY { "!" } else { "" };
        format!("{:.0} %{mark}", spread * 100.0)
    }
}
