//! The rows: each front end beside its floor, at several numbers of requests at once.

use crate::Result;
use crate::load::{self, Pass};
use crate::options::{Floor, Options};
use crate::process::Process;
use crate::repository;
use crate::requests::{Front, Work, exchanges, floor_exchanges};
use crate::table::{Table, median, spread, verdict};
use std::io::IsTerminal;

pub const COLUMNS: &[&str] = &[
    "row",
    "req/s",
    "p50 µs",
    "p99 µs",
    "CPU µs/req",
    "floor req/s",
    "floor p50",
    "floor p99",
    "floor CPU",
    "ratio",
    "spread",
    "peak RSS MB",
    "target",
    "",
];
const SMALL: usize = 64;
const LARGE: usize = 16 << 20;
const AT_ONCE: [usize; 4] = [1, 4, 16, 64];
/// Passes that lie further apart than this tell more about the machine than about the server.
pub const NOISY: f64 = 0.25;

struct Row {
    front: Front,
    work: Work,
    concurrency: usize,
}

impl Row {
    fn name(&self) -> String {
        let size = match self.work.bytes() {
            n if n >= 1 << 20 => format!("{}M", n >> 20),
            n => n.to_string(),
        };
        let model = if self.work == Work::AddSub { "addsub" } else { "identity" };
        format!("{} {model} {size} c{}", self.front.name(), self.concurrency)
    }

    /// The most that a request may cost, as a multiple of the floor.
    fn target(&self) -> Option<f64> {
        match (self.front, self.work, self.concurrency) {
            (Front::V2Http, Work::Identity(SMALL), 16) => Some(3.0),
            (Front::V2Grpc, Work::Identity(SMALL), 16) => Some(2.2),
            _ => None,
        }
    }
}

fn rows(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |front, work, concurrency| rows.push(Row { front, work, concurrency });
    for front in Front::ALL {
        for concurrency in AT_ONCE {
            add(front, Work::Identity(SMALL), concurrency);
        }
    }
    if repository::has_onnxruntime(options) {
        for front in Front::ALL {
            for concurrency in AT_ONCE {
                add(front, Work::AddSub, concurrency);
            }
        }
    }
    // Last, because the allocator keeps some of their memory, and rows after them would show it.
    for front in Front::ALL.into_iter().filter(|front| *front != Front::V2Json) {
        add(front, Work::Identity(LARGE), 1);
    }
    rows.retain(|row| options.wants(&row.name()));
    rows
}

pub fn measure(options: &Options, table: &mut Table) -> Result<()> {
    let rows = rows(options);
    if rows.is_empty() {
        return Ok(());
    }
    let models = repository::serving(options)?;
    let logs = repository::empty()?;
    let server = Process::server(options, models.path(), logs.path())?;
    let hyper = Process::floor(Floor::Hyper, logs.path())?;
    let tonic = Process::floor(Floor::Tonic, logs.path())?;
    let mut noisy = 0;
    for row in &rows {
        let name = row.name();
        show(&name);
        let floor = if row.front.floor() == Floor::Hyper { &hyper } else { &tonic };
        match passes(options, row, &server, floor) {
            Ok(measured) => {
                noisy += usize::from(measured.spread() > NOISY);
                let peak = server.memory("VmHWM")?;
                table.row(measured.cells(row, peak));
            }
            Err(problem) => table.failure(&name, &problem),
        }
    }
    show("");
    if noisy > 0 {
        let n = rows.len();
        table.remark(format!(
            "noisy: in {noisy} of {n} rows the passes lie more than {:.0} % apart; \
             run again when the machine is idle",
            NOISY * 100.0
        ));
    }
    Ok(())
}

/// Where the measurement is, for somebody who waits for it.
fn show(row: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{row:<40}\r");
    }
}

struct Measured {
    ours: Vec<Pass>,
    floor: Vec<Pass>,
}

/// Floor and server in turn, so that what else happens on the machine hits both.
fn passes(options: &Options, row: &Row, server: &Process, floor: &Process) -> Result<Measured> {
    let (ours, theirs) = (exchanges(row.front, row.work), floor_exchanges(row.front, row.work));
    let mut measured = Measured { ours: Vec::new(), floor: Vec::new() };
    server.forget_peak();
    for _ in 0..options.passes {
        let ask = |process, exchanges| {
            load::pass(process, row.front.wire(), exchanges, row.concurrency, options.pass)
        };
        measured.floor.push(ask(floor, &theirs).map_err(|e| format!("the floor: {e}"))?);
        measured.ours.push(ask(server, &ours)?);
    }
    Ok(measured)
}

fn of(passes: &[Pass], number: fn(&Pass) -> f64) -> Vec<f64> {
    passes.iter().map(number).collect()
}

impl Measured {
    /// Of the CPU time, the server's or the floor's, whichever is worse.
    fn spread(&self) -> f64 {
        let spread = |passes| spread(&of(passes, |pass| pass.cpu_us));
        spread(&self.ours).max(spread(&self.floor))
    }

    fn cells(&self, row: &Row, peak_mb: f64) -> Vec<String> {
        let ours = |number| median(&of(&self.ours, number));
        let floor = |number| median(&of(&self.floor, number));
        let (cpu, floor_cpu) = (ours(|p| p.cpu_us), floor(|p| p.cpu_us));
        let ratio = if floor_cpu > 0.0 { cpu / floor_cpu } else { 0.0 };
        let target = row.target();
        let spread = self.spread() * 100.0;
        let mark = if self.spread() > NOISY { "!" } else { "" };
        vec![
            row.name(),
            format!("{:.0}", ours(|p| p.per_second)),
            format!("{:.0}", ours(|p| p.p50_us)),
            format!("{:.0}", ours(|p| p.p99_us)),
            format!("{cpu:.1}"),
            format!("{:.0}", floor(|p| p.per_second)),
            format!("{:.0}", floor(|p| p.p50_us)),
            format!("{:.0}", floor(|p| p.p99_us)),
            format!("{floor_cpu:.1}"),
            format!("{ratio:.2}"),
            format!("{spread:.0} %{mark}"),
            format!("{peak_mb:.1}"),
            target.map_or(String::new(), |limit| format!("<={limit:.1}")),
            target.map_or("", |limit| verdict(ratio <= limit)).to_owned(),
        ]
    }
}
