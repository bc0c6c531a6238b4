//! The share of full batches with many concurrent requests.

use super::batches::Batches;
use super::models::{self, Model};
use crate::Result;
use crate::load;
use crate::options::Options;
use crate::process::Process;
use crate::requests::{Frontend, Work, exchanges};
use crate::table::{Table, median, verdict};

pub const COLUMNS: &[&str] = &[
    "batches",
    "req/s",
    "p50 µs",
    "p99 µs",
    "batches",
    "rows each",
    "of 16 or more",
    "closed by",
    "target",
    "",
];
const AT_ONCE: usize = 64;
const PREFERRED: u64 = 16;
const FULL: f64 = 0.9;
const MODELS: [Model; 4] =
    [models::SIXTEEN, models::SIXTEEN_SLOW, models::SIXTEEN_OF_64, models::SIXTEEN_OF_64_SLOW];

fn name(frontend: Frontend, model: Model) -> String {
    format!("scheduler batches {} {} c{AT_ONCE}", frontend.name(), model.0)
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let frontends = [Frontend::V2Grpc, Frontend::V2Http].into_iter();
    let rows = frontends.flat_map(|frontend| MODELS.map(|model| (frontend, model)));
    let rows: Vec<_> =
        rows.filter(|(frontend, model)| options.wants(&name(*frontend, *model))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let folder = models::folder(&MODELS)?;
    let server = Process::server(options, folder.path())?;
    for (frontend, model) in rows {
        let cells = row(options, &server, frontend, model.0);
        table.measured(name(frontend, model), cells);
    }
    Ok(())
}

fn row(
    options: &Options,
    server: &Process,
    frontend: Frontend,
    model: &'static str,
) -> Result<Vec<String>> {
    let exchanges = exchanges(frontend, Work::Row(model));
    let before = Batches::read_statistics(server, model)?;
    let passes = (0..options.passes)
        .map(|_| load::pass(server, frontend.wire(), &exchanges, AT_ONCE, options.pass))
        .collect::<Result<Vec<_>>>()?;
    // They include the first requests of each pass and the requests that it aborts.
    let batches = Batches::read_statistics(server, model)?.since(&before);
    let of = |number: fn(&load::Pass) -> f64| {
        format!("{:.0}", median(&passes.iter().map(number).collect::<Vec<_>>()))
    };
    let full = batches.share_from(PREFERRED);
    Ok(vec![
        of(|pass| pass.per_second),
        of(|pass| pass.p50_us),
        of(|pass| pass.p99_us),
        batches.count().to_string(),
        format!("{:.1}", batches.mean()),
        format!("{:.1} %", full * 100.0),
        batches.reasons(),
        format!(">={:.0} %", FULL * 100.0),
        verdict(full >= FULL).to_owned(),
    ])
}
