//! Alternating passes of server and floor, so that other load on the machine affects both.

use crate::Result;
use crate::load::Pass;
use crate::options::Options;
use crate::table::{median, spread};

/// The passes of a row.
#[derive(Default)]
pub struct Comparison {
    server: Vec<Pass>,
    floor: Vec<Pass>,
}

pub fn compare(
    options: &Options,
    mut server: impl FnMut() -> Result<Pass>,
    mut floor: impl FnMut() -> Result<Pass>,
) -> Result<Comparison> {
    let mut passes = Comparison::default();
    for _ in 0..options.passes {
        passes.floor.push(floor().map_err(|e| format!("the floor: {e}"))?);
        passes.server.push(server()?);
    }
    Ok(passes)
}

fn pass_numbers(passes: &[Pass], number: fn(&Pass) -> f64) -> Vec<f64> {
    passes.iter().map(number).collect()
}

impl Comparison {
    /// The median of the server's passes.
    pub fn server(&self, number: fn(&Pass) -> f64) -> f64 {
        median(&pass_numbers(&self.server, number))
    }

    /// The median of the floor's passes.
    pub fn floor(&self, number: fn(&Pass) -> f64) -> f64 {
        median(&pass_numbers(&self.floor, number))
    }

    /// The server's requests in a second.
    pub fn rate(&self) -> String {
        format!("{:.0}", self.server(|pass| pass.per_second))
    }

    /// Latency and CPU time of the server, all figures of the floor, ratio and spread.
    pub fn cells(&self) -> Vec<String> {
        vec![
            format!("{:.0}", self.server(|pass| pass.p50_us)),
            format!("{:.0}", self.server(|pass| pass.p99_us)),
            format!("{:.1}", self.server(|pass| pass.cpu_us)),
            format!("{:.0}", self.floor(|pass| pass.per_second)),
            format!("{:.0}", self.floor(|pass| pass.p50_us)),
            format!("{:.0}", self.floor(|pass| pass.p99_us)),
            format!("{:.1}", self.floor(|pass| pass.cpu_us)),
            format!("{:.2}", self.ratio()),
            self.spread(),
        ]
    }

    /// CPU time per request as a multiple of the floor's.
    fn ratio(&self) -> f64 {
        let floor = self.floor(|pass| pass.cpu_us);
        if floor > 0.0 { self.server(|pass| pass.cpu_us) / floor } else { 0.0 }
    }

    /// Spread of CPU time, the larger of the two.
    pub fn spread(&self) -> String {
        let spread = |passes| spread(&pass_numbers(passes, |pass| pass.cpu_us));
        let spread = spread(&self.server).max(spread(&self.floor));
        let mark = if spread > crate::serving::NOISY { "!" } else { "" };
        format!("{:.0} %{mark}", spread * 100.0)
    }
}
