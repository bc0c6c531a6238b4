//! Sequences over v2 gRPC streams, and the same streams without sequences.

use super::batches::Batches;
use super::models::{DIRECT_16, DIRECT_64, DYNAMIC, Model, OLDEST_64};
use super::{models, steps};
use crate::Result;
use crate::load::{self, Pass};
use crate::options::Options;
use crate::process::Process;
use crate::requests;
use crate::table::{Table, median};

pub const COLUMNS: &[&str] =
    &["sequences", "req/s", "p50 µs", "p99 µs", "CPU µs/req", "batches", "rows each", "closed by"];
const SEQUENCES: u64 = 64;
/// The first one has no sequences.
const MODELS: [Model; 4] = [DYNAMIC, DIRECT_16, DIRECT_64, OLDEST_64];

fn name(model: Model) -> String {
    format!("scheduler stream {} c{SEQUENCES}", model.0)
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let selected: Vec<_> =
        MODELS.into_iter().filter(|model| options.wants(&name(*model))).collect();
    if selected.is_empty() {
        return Ok(());
    }
    let folder = models::folder(&selected)?;
    let server = Process::server(options, folder.path())?;
    for model in selected {
        table.measured(name(model), row(options, &server, model.0));
    }
    Ok(())
}

fn row(options: &Options, server: &Process, model: &'static str) -> Result<Vec<String>> {
    // An id is reused when its sequence has ended.
    let steps = |id| requests::steps(model, id, steps::STEPS);
    let sequences: Vec<_> = (1..=SEQUENCES).map(steps).collect();
    let before = Batches::read_statistics(server, model)?;
    let passes = (0..options.passes)
        .map(|_| load::sequences(server, &sequences, options.pass))
        .collect::<Result<Vec<_>>>()?;
    let batches = Batches::read_statistics(server, model)?.since(&before);
    let of = |number: fn(&Pass) -> f64| median(&passes.iter().map(number).collect::<Vec<_>>());
    Ok(vec![
        format!("{:.0}", of(|pass| pass.per_second)),
        format!("{:.0}", of(|pass| pass.p50_us)),
        format!("{:.0}", of(|pass| pass.p99_us)),
        format!("{:.1}", of(|pass| pass.cpu_us)),
        batches.count().to_string(),
        format!("{:.1}", batches.mean()),
        batches.reasons(),
    ])
}
