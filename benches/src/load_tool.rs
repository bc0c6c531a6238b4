//! trtserver-perf beside wrk, h2load and perf_analyzer: its CPU time for a request, and whether it
//! measures the same.

use crate::Result;
use crate::clients::{Client, Clients, Workload};
use crate::load::Pass;
use crate::options::Options;
use crate::pairs::{self, Pairs};
use crate::process::Process;
use crate::repository;
use crate::requests::{Frontend, Work};
use crate::table::{Table, verdict};
use std::time::Duration;

const COST_COLUMNS: &[&str] = &[
    "load tool",
    "CPU µs/req",
    "user",
    "beside",
    "CPU µs/req",
    "user",
    "ratio",
    "spread",
    "target",
    "",
];
const AGREEMENT_COLUMNS: &[&str] = &[
    "load tool",
    "infer/s",
    "p50 µs",
    "beside",
    "infer/s",
    "p50 µs",
    "infer/s ratio",
    "p50 ratio",
    "target",
    "",
];
/// CPU time of a program is known to 10 ms.
const SHORTEST: Duration = Duration::from_secs(1);
/// The model of the agreement takes this long, one request at a time.
const SLOW_MS: u32 = 5;
const TOLERANCE: f64 = 0.05;

/// trtserver-perf's CPU time is at most this many times that of the other program.
const COSTS: [(Frontend, Client, f64); 4] = [
    (Frontend::V2Http, Client::Wrk, 1.5),
    (Frontend::V2Http, Client::PerfAnalyzer, 0.5),
    (Frontend::V2Grpc, Client::H2load, 1.5),
    (Frontend::V2Grpc, Client::PerfAnalyzer, 0.5),
];
const COSTED: Work = Work::Identity(64);
const SLOW: Work = Work::Echo("slow", 64);

pub fn measure(options: &Options) -> Result<Vec<Table>> {
    let mut costs = Table::new(COST_COLUMNS);
    let mut agreement = Table::new(AGREEMENT_COLUMNS);
    let wanted = |name: &dyn Fn(Frontend, Client) -> String| {
        let mut rows = COSTS.to_vec();
        rows.retain(|(frontend, beside, _)| options.wants(&name(*frontend, *beside)));
        rows
    };
    let cost_rows = wanted(&|frontend, beside| name("cost", frontend, COSTED, 16, beside));
    let mut agreement_rows = wanted(&|frontend, beside| name("same", frontend, SLOW, 4, beside));
    agreement_rows.retain(|(_, beside, _)| *beside == Client::PerfAnalyzer);
    if cost_rows.is_empty() && agreement_rows.is_empty() {
        return Ok(Vec::new());
    }
    let clients = Clients::find(options)?;
    if !cost_rows.is_empty() {
        let models = repository::serving(options)?;
        let server = clients.cores.as_server(|| Process::server(options, models.path()))?;
        for (frontend, beside, most) in cost_rows {
            let workload = Workload { frontend, work: COSTED, concurrency: 16 };
            let row = || {
                let pairs = passes(options, &clients, &server, workload, beside)?;
                Ok(cost(&pairs, beside, most))
            };
            add(&mut costs, &clients, beside, name("cost", frontend, COSTED, 16, beside), row);
        }
    }
    if !agreement_rows.is_empty() {
        let models = repository::slow(SLOW_MS)?;
        let server = clients.cores.as_server(|| Process::server(options, models.path()))?;
        for (frontend, beside, _) in agreement_rows {
            let workload = Workload { frontend, work: SLOW, concurrency: 4 };
            let row = || {
                let pairs = passes(options, &clients, &server, workload, beside)?;
                Ok(agree(&pairs, beside))
            };
            add(&mut agreement, &clients, beside, name("same", frontend, SLOW, 4, beside), row);
        }
    }
    clients.missing().into_iter().for_each(|line| costs.remark(line));
    Ok(vec![costs, agreement])
}

fn name(what: &str, frontend: Frontend, work: Work, concurrency: usize, beside: Client) -> String {
    format!(
        "load-tool {what} {} {} c{concurrency} {}",
        frontend.name(),
        work.model(),
        beside.name()
    )
}

/// The row, or a remark that the other program is missing.
fn add(
    table: &mut Table,
    clients: &Clients,
    beside: Client,
    name: String,
    row: impl FnOnce() -> Result<Vec<String>>,
) {
    match clients.has(beside) {
        true => table.measured(name, row()),
        false => table.row(vec![name, format!("no {}", beside.name())]),
    }
}

fn passes(
    options: &Options,
    clients: &Clients,
    server: &Process,
    workload: Workload,
    beside: Client,
) -> Result<Pairs> {
    let target = server.target();
    // h2load has a connection for each request, perf_analyzer shares connections as trtserver-perf
    // does.
    let calls_per_connection = if beside == Client::H2load { 1 } else { 16 };
    let ours = Client::TrtserverPerf { calls_per_connection };
    let pass = |client| move |length| clients.pass(client, &target, workload, length);
    let length = options.pass.max(SHORTEST);
    pairs::alternate(options.passes, length, pass(ours), pass(beside))
}

fn cost(pairs: &Pairs, beside: Client, most: f64) -> Vec<String> {
    let cpu: fn(&Pass) -> f64 = |pass| pass.client_cpu_us;
    let ((ours, theirs), (our_user, their_user)) =
        (pairs.both(cpu), pairs.both(|pass| pass.client_user_us));
    let ratio = pairs.ratio(cpu);
    vec![
        format!("{ours:.1}"),
        format!("{our_user:.1}"),
        beside.name().to_owned(),
        format!("{theirs:.1}"),
        format!("{their_user:.1}"),
        format!("{ratio:.2}"),
        pairs.spread(cpu),
        format!("ratio <={most}"),
        verdict(ratio <= most).to_owned(),
    ]
}

fn agree(pairs: &Pairs, beside: Client) -> Vec<String> {
    let (rate, their_rate) = pairs.both(|pass| pass.per_second);
    let (p50, their_p50) = pairs.both(|pass| pass.p50_us);
    let ratios = [pairs.ratio(|pass| pass.per_second), pairs.ratio(|pass| pass.p50_us)];
    let met = ratios.iter().all(|ratio| (ratio - 1.0).abs() <= TOLERANCE);
    vec![
        format!("{rate:.0}"),
        format!("{p50:.0}"),
        beside.name().to_owned(),
        format!("{their_rate:.0}"),
        format!("{their_p50:.0}"),
        format!("{:.3}", ratios[0]),
        format!("{:.3}", ratios[1]),
        format!("ratios 1 ±{TOLERANCE}"),
        verdict(met).to_owned(),
    ]
}
