//! CPU time of a small request beside an echo that answers as many requests a second.
//!
//! The plain floor answers faster than its client asks: the client never sleeps, and the floor's
//! responses wake nobody, which is a third of what a response costs the kernel. Here the echo keeps
//! its core busy for as long as the server takes longer, so that both meet the same client. That
//! time is subtracted from its CPU time; what is left is the kernel, hyper or tonic, and tokio.

use crate::Result;
use crate::clients::{Client, Clients, Workload};
use crate::load::{Pass, Target};
use crate::options::Options;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work};
use crate::table::{Table, median, number, spread, verdict};
use std::time::Duration;

pub const COLUMNS: &[&str] = &[
    "equal rate",
    "req/s",
    "p50 µs",
    "CPU µs/req",
    "floor req/s",
    "floor p50",
    "floor CPU",
    "busy µs",
    "ratio",
    "spread",
    "target",
    "",
];
const FRONTENDS: [Frontend; 4] =
    [Frontend::V2Http, Frontend::V2Json, Frontend::V1Http, Frontend::V2Grpc];
const WORK: Work = Work::Identity(64);
const IN_FLIGHT: usize = 16;
/// Rates that differ by less are equal.
const RATE_TOLERANCE: f64 = 0.03;
/// Floors that are started to find the busy time.
const ATTEMPTS: usize = 5;
/// The most CPU time, as a multiple of the floor's.
const MOST_RATIO: f64 = 1.3;

fn name(frontend: Frontend) -> String {
    format!("equal-rate {} identity 64 c{IN_FLIGHT}", frontend.name())
}

pub fn measure(options: &Options) -> Result<Table> {
    let mut table = Table::new(COLUMNS);
    let rows: Vec<_> = FRONTENDS.into_iter().filter(|f| options.wants(&name(*f))).collect();
    if rows.is_empty() {
        return Ok(table);
    }
    let clients = Clients::find(options)?;
    let models = repository::serving(options)?;
    let server = clients.cores.as_server(|| Process::server(options, models.path()))?;
    for frontend in rows {
        let row = Row { options, clients: &clients, frontend };
        table.measured(name(frontend), row.measure(&server.target()));
    }
    Ok(table)
}

/// The median of a figure.
fn middle(passes: &[Pass], figure: fn(&Pass) -> f64) -> f64 {
    median(&passes.iter().map(figure).collect::<Vec<_>>())
}

/// As a part of the first.
fn rates_differ_by([ours, floor]: [f64; 2]) -> f64 {
    (floor / ours - 1.0).abs()
}

struct Row<'r> {
    options: &'r Options,
    clients: &'r Clients,
    frontend: Frontend,
}

impl Row<'_> {
    fn measure(&self, server: &Target) -> Result<Vec<String>> {
        let (floor, busy) = self.calibrate(server)?;
        let [ours, floors] = self.passes(server, &floor)?;
        let busy_us = busy.as_secs_f64() * 1e6;
        let cpu = |passes: &[Pass]| -> Vec<f64> { passes.iter().map(|p| p.cpu_us).collect() };
        let (own_cpu, floor_cpu) = (median(&cpu(&ours)), median(&cpu(&floors)) - busy_us);
        let ratio = own_cpu / floor_cpu;
        let rates = [&ours, &floors].map(|passes| middle(passes, |p| p.per_second));
        let outcome = match rates_differ_by(rates) < 2.0 * RATE_TOLERANCE {
            true => verdict(ratio <= MOST_RATIO),
            false => "rates differ",
        };
        Ok(vec![
            number(rates[0], 0),
            number(middle(&ours, |p| p.p50_us), 0),
            number(own_cpu, 1),
            number(rates[1], 0),
            number(middle(&floors, |p| p.p50_us), 0),
            number(floor_cpu, 1),
            number(busy_us, 1),
            number(ratio, 2),
            format!("{:.0} %", 100.0 * spread(&cpu(&ours)).max(spread(&cpu(&floors)))),
            format!("<={MOST_RATIO}"),
            outcome.to_owned(),
        ])
    }

    /// A floor whose rate is the server's, and how long it is busy with each request.
    fn calibrate(&self, server: &Target) -> Result<(Process, Duration)> {
        let mut busy_s = 0.0;
        for attempt in 0..ATTEMPTS {
            let busy = Duration::from_secs_f64(busy_s);
            let start = || Process::busy_floor(self.frontend.floor(), busy);
            let floor = self.clients.cores.as_server(start)?;
            let passes = self.passes(server, &floor)?;
            let [ours, floors] = passes.each_ref().map(|passes| middle(passes, |p| p.per_second));
            if rates_differ_by([ours, floors]) <= RATE_TOLERANCE || attempt + 1 == ATTEMPTS {
                return Ok((floor, busy));
            }
            // Where a server has several cores, each request occupies one of them for longer.
            let cores = self.clients.cores.for_servers() as f64;
            busy_s = (busy_s + cores * (1.0 / ours - 1.0 / floors)).max(0.0);
        }
        Err("not measured".to_owned())
    }

    /// Passes of the server and of the floor, in turn.
    fn passes(&self, server: &Target, floor: &Process) -> Result<[Vec<Pass>; 2]> {
        let [mut ours, mut floors] = [const { Vec::new() }; 2];
        for _ in 0..self.options.passes {
            ours.push(self.pass(server)?);
            floors.push(self.floor_pass(floor)?);
        }
        Ok([ours, floors])
    }

    fn workload(&self) -> Workload {
        Workload { frontend: self.frontend, work: WORK, concurrency: IN_FLIGHT }
    }

    fn pass(&self, server: &Target) -> Result<Pass> {
        self.clients.pass(Client::Own, server, self.workload(), self.options.pass)
    }

    fn floor_pass(&self, floor: &Process) -> Result<Pass> {
        let (workload, length) = (self.workload(), self.options.pass);
        let pass = self.clients.floor_pass(Client::Own, &floor.target(), workload, length)?;
        pass.ok_or_else(|| "no floor for this client".to_owned())
    }
}
