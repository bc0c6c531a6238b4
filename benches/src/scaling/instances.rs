//! Instances of a model: one with many compared with one with a single instance, executed by
//! network threads or by instance threads.

use super::{FRONTENDS, GrowthPlot, SMALL, growth_cell};
use crate::Result;
use crate::load;
use crate::options::Options;
use crate::pairs;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work, exchanges};
use crate::table::Table;

pub const COLUMNS: &[&str] = &[
    "instances",
    "req/s",
    "of one",
    "p50 µs",
    "of one",
    "p99 µs",
    "of one",
    "CPU µs/req",
    "of one",
    "growth",
    "spread",
    "target",
];
const INSTANCES: [usize; 4] = [1, 4, 16, 64];
const AT_ONCE: usize = 64;

/// Whose thread executes the model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Executed {
    /// A model quick enough for inline execution.
    Inline,
    /// One that takes a millisecond.
    OnInstances,
}

impl Executed {
    fn name(self) -> &'static str {
        match self {
            Executed::Inline => "inline",
            Executed::OnInstances => "threads",
        }
    }

    fn delay_ms(self) -> u32 {
        u32::from(self == Executed::OnInstances)
    }

    /// With delays, one instance alone would be measured mostly asleep: as many requests as
    /// instances keep both as busy.
    fn at_once(self, instances: usize) -> usize {
        if self == Executed::Inline { AT_ONCE } else { instances }
    }
}

fn name(frontend: Frontend, instances: usize, executed: Executed) -> String {
    format!("scaling instances {} {instances} {}", frontend.name(), executed.name())
}

pub fn measure(options: &Options, table: &mut Table, plot: &mut GrowthPlot) -> Result<()> {
    for executed in [Executed::Inline, Executed::OnInstances] {
        let rows = FRONTENDS
            .into_iter()
            .flat_map(|frontend| INSTANCES.map(|instances| (frontend, instances)))
            .filter(|(frontend, instances)| options.wants(&name(*frontend, *instances, executed)));
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            continue;
        }
        let models = repository::instances(&INSTANCES, executed.delay_ms())?;
        let server = Process::server(options, models.path())?;
        for (frontend, instances) in rows {
            let cells = row(options, &server, frontend, instances, executed);
            let cells = cells.map(|(growth, cells)| {
                let series = format!("{}, {}", frontend.name(), executed.name());
                plot.add("instances", series, instances, growth);
                cells
            });
            table.measured(name(frontend, instances, executed), cells);
        }
    }
    Ok(())
}

fn row(
    options: &Options,
    server: &Process,
    frontend: Frontend,
    instances: usize,
    executed: Executed,
) -> Result<(f64, Vec<String>)> {
    let requests = |count: usize| {
        let model = &*repository::instances_name(count).leak();
        exchanges(frontend, Work::Echo(model, SMALL))
    };
    let (many, one) = (requests(instances), requests(1));
    let pass = |exchanges, at_once, length| {
        load::pass(server, frontend.wire(), exchanges, at_once, length)
    };
    let pairs = pairs::run(
        options,
        |length| pass(&many, executed.at_once(instances), length),
        |length| pass(&one, executed.at_once(1), length),
    )?;
    let growth = pairs.ratio(|pass| pass.cpu_us);
    let (rate, rate_one) = pairs.both(|pass| pass.per_second);
    let (p50, p50_one) = pairs.both(|pass| pass.p50_us);
    let (p99, p99_one) = pairs.both(|pass| pass.p99_us);
    let (cpu, cpu_one) = pairs.both(|pass| pass.cpu_us);
    let cells = vec![
        format!("{rate:.0}"),
        format!("{rate_one:.0}"),
        format!("{p50:.0}"),
        format!("{p50_one:.0}"),
        format!("{p99:.0}"),
        format!("{p99_one:.0}"),
        format!("{cpu:.1}"),
        format!("{cpu_one:.1}"),
        format!("{growth:.2}"),
        pairs.spread(|pass| pass.cpu_us),
        growth_cell(growth),
    ];
    Ok((growth, cells))
}
