//! Summary of a row's passes.

use super::NOISY;
use super::cases::{Case, Limit};
use crate::load::Pass;
use crate::plot::Plot;
use crate::table::{Table, median, number, spread, verdict};

const COLUMNS: [&str; 21] = [
    "protocol",
    "model",
    "payload",
    "batch",
    "concurrency",
    "client",
    "infer/s",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
    "max µs",
    "CPU µs/req",
    "peak RSS MB",
    "floor infer/s",
    "floor p50",
    "floor p99",
    "floor CPU",
    "floor_ratio",
    "spread",
    "target",
    "",
];
/// The peer's figures, and ours over the peer's.
const PEER_COLUMNS: [&str; 10] = [
    "vs infer/s",
    "vs p50",
    "vs p99",
    "vs p99.9",
    "vs max",
    "vs CPU",
    "vs RSS MB",
    "infer/s ratio",
    "p99 ratio",
    "CPU ratio",
];
/// This many are text columns.
const TEXT_COLUMNS: usize = 6;

pub fn table(with_peer: bool) -> Table {
    let mut columns = COLUMNS.to_vec();
    if with_peer {
        columns.extend(PEER_COLUMNS);
    }
    Table::with_text_columns(&columns, TEXT_COLUMNS)
}

#[derive(Default)]
pub struct Measured {
    pub ours: Vec<Pass>,
    /// Empty if the client has no floor.
    pub floor: Vec<Pass>,
    /// Empty without a peer.
    pub peer: Vec<Pass>,
    /// Why the peer's measurement ended early.
    pub peer_problem: Option<String>,
    /// Peak memory in MB, ours and the peer's.
    pub peaks: [Option<f64>; 2],
}

/// The medians of a side.
struct Middle {
    per_second: f64,
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
    cpu: f64,
}

fn pass_numbers(passes: &[Pass], number: fn(&Pass) -> f64) -> Vec<f64> {
    passes.iter().map(number).collect()
}

/// NaN if nothing was measured.
fn middle(passes: &[Pass]) -> Middle {
    let middle =
        |number| if passes.is_empty() { f64::NAN } else { median(&pass_numbers(passes, number)) };
    Middle {
        per_second: middle(|p| p.per_second),
        p50: middle(|p| p.p50_us),
        p99: middle(|p| p.p99_us),
        p999: middle(|p| p.p999_us),
        max: middle(|p| p.max_us),
        cpu: middle(|p| p.cpu_us),
    }
}

impl Measured {
    /// Spread of the CPU time, the larger of the servers.
    pub fn spread(&self) -> f64 {
        let sides = [&self.ours, &self.floor, &self.peer];
        sides
            .map(|passes| spread(&pass_numbers(passes, |pass| pass.cpu_us)))
            .into_iter()
            .fold(0.0, f64::max)
    }

    /// `in_process_us` is p50 of the same call without a server; 0 if not measured.
    pub fn cells(&self, case: &Case, with_peer: bool, in_process_us: f64) -> Vec<String> {
        let (ours, floor) = (middle(&self.ours), middle(&self.floor));
        let ratio = ours.cpu / floor.cpu;
        let (target, met) = match case.limit() {
            Some(Limit::FloorRatio(most)) => {
                (format!("floor_ratio <={most:.1}"), verdict(ratio <= most))
            }
            Some(Limit::Added(most)) => {
                let met = ours.p50 - in_process_us <= most;
                (format!("p50 <=in-process+{most:.0}"), verdict(met))
            }
            None => (String::new(), ""),
        };
        let mark = if self.spread() > NOISY { "!" } else { "" };
        let mut cells = case.labels().to_vec();
        cells.extend([
            number(ours.per_second, 0),
            number(ours.p50, 0),
            number(ours.p99, 0),
            number(ours.p999, 0),
            number(ours.max, 0),
            number(ours.cpu, 1),
            number(self.peaks[0].unwrap_or(f64::NAN), 1),
            number(floor.per_second, 0),
            number(floor.p50, 0),
            number(floor.p99, 0),
            number(floor.cpu, 1),
            number(ratio, 2),
            format!("{:.0} %{mark}", self.spread() * 100.0),
            target,
            met.to_owned(),
        ]);
        if with_peer {
            let peer = middle(&self.peer);
            cells.extend([
                number(peer.per_second, 0),
                number(peer.p50, 0),
                number(peer.p99, 0),
                number(peer.p999, 0),
                number(peer.max, 0),
                number(peer.cpu, 1),
                number(self.peaks[1].unwrap_or(f64::NAN), 1),
                number(ours.per_second / peer.per_second, 2),
                number(ours.p99 / peer.p99, 2),
                number(ours.cpu / peer.cpu, 2),
            ]);
        }
        cells
    }

    pub fn points(&self, case: &Case, plot: &mut Plot) {
        for (passes, beside) in [(&self.ours, false), (&self.peer, true)] {
            let middle = middle(passes);
            if middle.per_second.is_finite() {
                let (group, series) = case.series();
                let point = [middle.per_second, middle.p50, middle.p99];
                plot.add(&group, &series, beside, point);
            }
        }
    }
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
