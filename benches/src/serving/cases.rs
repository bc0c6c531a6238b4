//! The rows of the main table.

use crate::clients::{Ask, Client, Clients};
use crate::options::Options;
use crate::repository;
use crate::requests::{Front, Work};

pub const SMALL: usize = 64;
const MEDIUM: usize = 4 << 20;
const LARGE: usize = 16 << 20;
const AT_ONCE: [usize; 4] = [1, 4, 16, 64];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub ask: Ask,
    pub client: Client,
}

impl Case {
    pub fn name(&self) -> String {
        let [protocol, model, payload, _, concurrency, client] = self.words();
        format!("{protocol} {model} {payload} c{concurrency} {client}")
    }

    /// The first cells of the row.
    pub fn words(&self) -> [String; 6] {
        let Ask { front, work, concurrency } = self.ask;
        [
            front.name().to_owned(),
            model_name(work).to_owned(),
            size(work.bytes()),
            "1".to_owned(),
            concurrency.to_string(),
            self.client.name().to_owned(),
        ]
    }

    /// Group and series in the plot; the concurrency varies along a series.
    pub fn series(&self) -> (String, String) {
        let [protocol, model, payload, _, _, client] = self.words();
        (format!("{model} {payload}"), format!("{protocol} {client}"))
    }

    pub fn limit(&self) -> Option<Limit> {
        let Ask { front, work: Work::Identity(SMALL), concurrency } = self.ask else { return None };
        match (self.client, front, concurrency) {
            (Client::Own, Front::V2Http, 1) => Some(Limit::Added(45.0)),
            (Client::Own, Front::V2Grpc, 1) => Some(Limit::Added(60.0)),
            (Client::Own, Front::V2Http, 16) => Some(Limit::FloorRatio(3.0)),
            (Client::Own, Front::V2Grpc, 16) => Some(Limit::FloorRatio(2.2)),
            _ => None,
        }
    }
}

/// Target of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// CPU time per request over the floor's.
    FloorRatio(f64),
    /// Microseconds of p50 above the same call in process.
    Added(f64),
}

pub fn model_name(work: Work) -> &'static str {
    if work == Work::AddSub { "addsub" } else { "identity" }
}

pub fn size(bytes: usize) -> String {
    match bytes {
        n if n >= 1 << 20 => format!("{}M", n >> 20),
        n => n.to_string(),
    }
}

/// Cases whose name contains the text. Cases of missing clients are measured by our own, once.
pub fn wanted(options: &Options, clients: &Clients) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (client, ask) in all(options) {
        let Some(client) = clients.instead_of(client) else { continue };
        let case = Case { ask, client };
        if options.wants(&case.name()) && !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Large tensors are last: memory that the allocator keeps would show in later rows.
fn all(options: &Options) -> Vec<(Client, Ask)> {
    let quick = options.quick;
    let small = [Work::Identity(SMALL), Work::AddSub];
    let works = &small[..if repository::has_onnxruntime(options) { 2 } else { 1 }];
    let mut all = Vec::new();
    let mut add = |client, front, work, concurrency| {
        all.push((client, Ask { front, work, concurrency }));
    };
    for &work in works {
        let few: &[usize] = match (quick, work) {
            (false, _) => &[1, 16, 64],
            (true, Work::AddSub) => &[16],
            (true, _) => &[1, 16],
        };
        for (client, front) in [(Client::Wrk, Front::V2Http), (Client::H2load, Front::V2Grpc)] {
            few.iter().for_each(|&c| add(client, front, work, c));
        }
        if !quick {
            add(Client::Wrk, Front::V2Json, work, 16);
        }
        for front in [Front::V2Http, Front::V2Grpc, Front::V2Stream] {
            if !quick || (front != Front::V2Stream && work != Work::AddSub) {
                [1, 16].into_iter().for_each(|c| add(Client::PerfAnalyzer, front, work, c));
            }
        }
        let own: &[usize] = if quick { few } else { &AT_ONCE };
        for front in Front::ALL {
            own.iter().for_each(|&c| add(Client::Own, front, work, c));
        }
    }
    for work in [Work::Identity(MEDIUM), Work::Identity(LARGE)] {
        add(Client::Wrk, Front::V2Http, work, 1);
        add(Client::H2load, Front::V2Grpc, work, 1);
        if !quick && work == Work::Identity(MEDIUM) {
            add(Client::PerfAnalyzer, Front::V2Http, work, 1);
            add(Client::PerfAnalyzer, Front::V2Grpc, work, 1);
            add(Client::Own, Front::V2Http, work, 4);
            add(Client::Own, Front::V2Grpc, work, 4);
        }
        for front in Front::ALL.into_iter().filter(|front| *front != Front::V2Json) {
            if !quick || matches!(front, Front::V2Http | Front::V2Grpc) {
                add(Client::Own, front, work, 1);
            }
        }
    }
    all
}
