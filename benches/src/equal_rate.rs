//! CPU time of a small request beside an echo that answers as many requests a second. Measured only
//! with `--only`, since it takes minutes.
//!
//! The plain floor answers faster than its client asks. The client never sleeps, so the kernel does
//! not have to wake it for a response. Here the echo keeps its core busy for as long as the server
//! takes longer, so that both meet the same client. That time is subtracted from its CPU time; what
//! is left is the kernel, hyper or tonic, and tokio.

use crate::Result;
use crate::clients::{Client, Clients, Workload};
use crate::load::{Pass, Target};
use crate::options::Options;
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work};
use crate::scaling::floor::{Comparison, compare};
use crate::table::{Table, number, verdict};
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
    format!("equal-rate {} 64 c{IN_FLIGHT}", frontend.name())
}

pub fn measure(options: &Options) -> Result<Table> {
    let mut table = Table::new(COLUMNS);
    let rows: Vec<_> = FRONTENDS.into_iter().filter(|f| options.wants(&name(*f))).collect();
    if rows.is_empty() || options.only.is_none() {
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

struct Row<'r> {
    options: &'r Options,
    clients: &'r Clients,
    frontend: Frontend,
}

impl Row<'_> {
    fn measure(&self, server: &Target) -> Result<Vec<String>> {
        let (passes, busy_s) = self.passes_at_equal_rates(server)?;
        let (own_cpu, busy_us) = (passes.server(|pass| pass.cpu_us), busy_s * 1e6);
        let floor_cpu = passes.floor(|pass| pass.cpu_us) - busy_us;
        let ratio = own_cpu / floor_cpu;
        let outcome = match rate_difference(&passes) <= RATE_TOLERANCE {
            true => verdict(ratio <= MOST_RATIO),
            false => "rates differ",
        };
        Ok(vec![
            passes.rate(),
            number(passes.server(|pass| pass.p50_us), 0),
            number(own_cpu, 1),
            number(passes.floor(|pass| pass.per_second), 0),
            number(passes.floor(|pass| pass.p50_us), 0),
            number(floor_cpu, 1),
            number(busy_us, 1),
            number(ratio, 2),
            passes.spread(),
            format!("<={MOST_RATIO}"),
            outcome.to_owned(),
        ])
    }

    /// Passes beside a floor whose rate is the server's, and the seconds that it is busy with each
    /// request. After [`ATTEMPTS`] floors, those of the last, whose rate may differ.
    fn passes_at_equal_rates(&self, server: &Target) -> Result<(Comparison, f64)> {
        let (mut busy_s, mut attempt) = (0.0, 1);
        loop {
            let busy = Duration::from_secs_f64(busy_s);
            let start = || Process::busy_floor(self.frontend.floor(), busy);
            let floor = self.clients.cores.as_server(start)?;
            let passes = compare(self.options, || self.pass(server), || self.floor_pass(&floor))?;
            if attempt == ATTEMPTS || rate_difference(&passes) <= RATE_TOLERANCE {
                return Ok((passes, busy_s));
            }
            attempt += 1;
            let per_second = |pass: &Pass| pass.per_second;
            let longer_s = 1.0 / passes.server(per_second) - 1.0 / passes.floor(per_second);
            // Where a server has several cores, each request occupies one of them for longer.
            busy_s = (busy_s + self.clients.cores.for_servers() as f64 * longer_s).max(0.0);
        }
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
        pass.ok_or_else(|| "there is none for the own client".to_owned())
    }
}

/// As a part of the server's rate.
fn rate_difference(passes: &Comparison) -> f64 {
    let per_second = |pass: &Pass| pass.per_second;
    (passes.floor(per_second) / passes.server(per_second) - 1.0).abs()
}
