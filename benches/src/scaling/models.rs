//! Loaded models: a server with many compared with a server with one; requests to one model or to
//! all in turn.

use super::{FRONTENDS, GrowthPlot, SMALL, growth_cell};
use crate::Result;
use crate::exchange::Exchange;
use crate::load;
use crate::options::Options;
use crate::pairs;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges};
use crate::table::Table;
use std::fs;
use tempfile::TempDir;

pub const COLUMNS: &[&str] = &[
    "models",
    "req/s",
    "of one",
    "ratio",
    "p50 µs",
    "p99 µs",
    "of one",
    "CPU µs/req",
    "of one",
    "ratio",
    "spread",
    "RSS MB",
    "ready ms",
    "target",
];
const LOADED: [usize; 5] = [1, 10, 100, 1000, 10_000];
const AT_ONCE: usize = 16;
/// Above this, a server with the usual limit of memory mappings (65,530) wants the number of
/// instances as a flag.
const DEFAULT_INSTANCES: usize = 4000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Recipients {
    One,
    All,
}

fn name(frontend: Frontend, loaded: usize, recipients: Recipients) -> String {
    let recipients = if recipients == Recipients::One { "one" } else { "all" };
    format!("scaling models {} {loaded} {recipients} c{AT_ONCE}", frontend.name())
}

fn series(frontend: Frontend, recipients: Recipients) -> String {
    let recipients = if recipients == Recipients::One { "to one" } else { "to all in turn" };
    format!("{}, {recipients}", frontend.name())
}

fn rows(loaded: usize) -> Vec<(Frontend, Recipients)> {
    let both: &[Recipients] =
        if loaded == 1 { &[Recipients::One] } else { &[Recipients::One, Recipients::All] };
    FRONTENDS
        .into_iter()
        .flat_map(|frontend| both.iter().map(move |recipients| (frontend, *recipients)))
        .collect()
}

pub fn measure(options: &Options, table: &mut Table, plot: &mut GrowthPlot) -> Result<()> {
    let mut single = None;
    let most = if options.check_only { 10 } else { usize::MAX };
    for loaded in LOADED.into_iter().filter(|loaded| *loaded <= most) {
        let mut rows = rows(loaded);
        rows.retain(|(frontend, recipients)| options.wants(&name(*frontend, loaded, *recipients)));
        if rows.is_empty() {
            continue;
        }
        let single = match &single {
            Some(single) => single,
            None => single.insert(LoadedServer::with(options, 1)?),
        };
        let many = LoadedServer::with(options, loaded)?;
        let memory = many.process.memory("VmRSS")?;
        for (frontend, recipients) in rows {
            let cells = row(options, single, &many, frontend, recipients, memory);
            let name = name(frontend, loaded, recipients);
            table.measured(
                name,
                cells.map(|(growth, cells)| {
                    plot.add("models", series(frontend, recipients), loaded, growth);
                    cells
                }),
            );
        }
    }
    Ok(())
}

/// A server and its model repository.
struct LoadedServer {
    process: Process,
    models: Vec<&'static str>,
    _folder: TempDir,
}

impl LoadedServer {
    fn with(options: &Options, count: usize) -> Result<Self> {
        let folder = repository::empty()?;
        let names = (0..count).map(|i| &*format!("echo_{i}").leak());
        let models: Vec<&'static str> = names.collect();
        for model in &models {
            write(&folder, model)?;
        }
        let flag = format!("--max-instances={count}");
        let flags: &[&str] = if count > DEFAULT_INSTANCES { &[&flag] } else { &[] };
        let process = Process::server_with(options, folder.path(), flags)?;
        Ok(LoadedServer { process, models, _folder: folder })
    }

    fn exchanges(&self, frontend: Frontend, recipients: Recipients) -> Vec<Exchange> {
        let some = if recipients == Recipients::One { &self.models[..1] } else { &self.models };
        some.iter().flat_map(|model| exchanges(frontend, Work::Echo(model, SMALL))).collect()
    }
}

fn write(folder: &TempDir, model: &str) -> Result<()> {
    let version = folder.path().join(model).join("1");
    fs::create_dir_all(&version).map_err(|e| format!("{}: {e}", version.display()))?;
    let file = folder.path().join(model).join("config.pbtxt");
    let text = format!(
        "name: \"{model}\"\nbackend: \"probe\"\n\
         input [ {{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1 ] }} ]\n\
         output [ {{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ] }} ]\n"
    );
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))
}

fn row(
    options: &Options,
    single: &LoadedServer,
    many: &LoadedServer,
    frontend: Frontend,
    recipients: Recipients,
    memory: f64,
) -> Result<(f64, Vec<String>)> {
    let (one, some) =
        (single.exchanges(frontend, Recipients::One), many.exchanges(frontend, recipients));
    let pairs = pairs::run(
        options,
        |length| load::pass(&many.process, frontend.wire(), &some, AT_ONCE, length),
        |length| load::pass(&single.process, frontend.wire(), &one, AT_ONCE, length),
    )?;
    let (rate, rate_one) = pairs.both(|pass| pass.per_second);
    let (p50, _) = pairs.both(|pass| pass.p50_us);
    let (p99, p99_one) = pairs.both(|pass| pass.p99_us);
    let (cpu, cpu_one) = pairs.both(|pass| pass.cpu_us);
    let growth = pairs.ratio(|pass| pass.cpu_us);
    let cells = vec![
        format!("{rate:.0}"),
        format!("{rate_one:.0}"),
        format!("{:.2}", pairs.ratio(|pass| pass.per_second)),
        format!("{p50:.0}"),
        format!("{p99:.0}"),
        format!("{p99_one:.0}"),
        format!("{cpu:.1}"),
        format!("{cpu_one:.1}"),
        format!("{growth:.2}"),
        pairs.spread(|pass| pass.cpu_us),
        format!("{memory:.1}"),
        format!("{:.1}", many.process.ready_after.as_secs_f64() * 1e3),
        growth_cell(growth),
    ];
    Ok((growth, cells))
}
