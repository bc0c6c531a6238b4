//! Alternating passes of server and floor, so that other load on the machine affects both.

use crate::Result;
use crate::load::Pass;
use crate::options::Options;
use crate::table::{median, spread};

/// The passes of a row.
#[derive(Default)]
pub struct Beside {
    ours: Vec<Pass>,
    floor: Vec<Pass>,
}

pub fn run(
    options: &Options,
    mut ours: impl FnMut() -> Result<Pass>,
    mut floor: impl FnMut() -> Result<Pass>,
) -> Result<Beside> {
    let mut beside = Beside::default();
    for _ in 0..options.passes {
        beside.floor.push(floor().map_err(|e| format!("the floor: {e}"))?);
        beside.ours.push(ours()?);
    }
    Ok(beside)
}

fn of(passes: &[Pass], number: fn(&Pass) -> f64) -> Vec<f64> {
    passes.iter().map(number).collect()
}

impl Beside {
    /// The median of the server's passes.
    pub fn ours(&self, number: fn(&Pass) -> f64) -> f64 {
        median(&of(&self.ours, number))
    }

    pub fn floor(&self, number: fn(&Pass) -> f64) -> f64 {
        median(&of(&self.floor, number))
    }

    /// CPU time per request as a multiple of the floor's.
    pub fn ratio(&self) -> f64 {
        let floor = self.floor(|pass| pass.cpu_us);
        if floor > 0.0 { self.ours(|pass| pass.cpu_us) / floor } else { 0.0 }
    }

    /// Spread of CPU time, the larger of the two.
    pub fn spread(&self) -> String {
        let spread = |passes| spread(&of(passes, |pass| pass.cpu_us));
        let spread = spread(&self.ours).max(spread(&self.floor));
        let mark = if spread > crate::serving::NOISY { "!" } else { "" };
        format!("{:.0} %{mark}", spread * 100.0)
    }
}
