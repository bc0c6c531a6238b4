//! The rows of the main table.

use crate::clients::{Client, Clients, Workload};
use crate::options::Options;
use crate::repository;
use crate::requests::{Frontend, Work};

pub const SMALL: usize = 64;
const MEDIUM: usize = 4 << 20;
const LARGE: usize = 16 << 20;
/// Tensors whose JSON has 5 KB, 80 KB and 1.3 MB.
const JSON: [usize; 3] = [1 << 10, 16 << 10, 256 << 10];
const AT_ONCE: [usize; 4] = [1, 4, 16, 64];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub workload: Workload,
    pub client: Client,
}

impl Case {
    pub fn name(&self) -> String {
        let [protocol, model, payload, _, concurrency, client] = self.labels();
        format!("{protocol} {model} {payload} c{concurrency} {client}")
    }

    /// The first cells of the row.
    pub fn labels(&self) -> [String; 6] {
        let Workload { frontend, work, concurrency } = self.workload;
        [
            frontend.name().to_owned(),
            model_name(work).to_owned(),
            size(work.bytes()),
            "1".to_owned(),
            concurrency.to_string(),
            self.client.name().to_owned(),
        ]
    }

    /// Group and series in the plot; the concurrency varies along a series.
    pub fn series(&self) -> (String, String) {
        let [protocol, model, payload, _, _, client] = self.labels();
        (format!("{model} {payload}"), format!("{protocol} {client}"))
    }

    pub fn limit(&self) -> Option<Limit> {
        let Workload { frontend, work: Work::Identity(SMALL), concurrency } = self.workload else {
            return None;
        };
        match (self.client, frontend, concurrency) {
            (Client::Own, Frontend::V2Http, 1) => Some(Limit::Added(45.0)),
            (Client::Own, Frontend::V2Grpc, 1) => Some(Limit::Added(60.0)),
            (Client::Own, Frontend::V2Http, 16) => Some(Limit::FloorRatio(3.0)),
            (Client::Own, Frontend::V2Grpc, 16) => Some(Limit::FloorRatio(2.2)),
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
        n if n >= 1 << 10 => format!("{}K", n >> 10),
        n => n.to_string(),
    }
}

/// Cases that `options` selects by name. Cases of missing clients are measured by our own, once.
pub fn selected(options: &Options, clients: &Clients) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (client, workload) in all(options) {
        let Some(client) = clients.instead_of(client) else { continue };
        let case = Case { workload, client };
        if options.wants(&case.name()) && !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Large tensors are last: memory that the allocator keeps would show in later rows.
fn all(options: &Options) -> Vec<(Client, Workload)> {
    let quick = options.quick;
    let small = [Work::Identity(SMALL), Work::AddSub];
    let works = &small[..if repository::has_onnxruntime(options) { 2 } else { 1 }];
    let mut all = Vec::new();
    let mut add = |client, frontend, work, concurrency| {
        all.push((client, Workload { frontend, work, concurrency }));
    };
    for &work in works {
        let few: &[usize] = match (quick, work) {
            (false, _) => &[1, 16, 64],
            (true, Work::AddSub) => &[16],
            (true, _) => &[1, 16],
        };
        for (client, frontend) in
            [(Client::Wrk, Frontend::V2Http), (Client::H2load, Frontend::V2Grpc)]
        {
            few.iter().for_each(|&c| add(client, frontend, work, c));
        }
        if !quick {
            add(Client::Wrk, Frontend::V2Json, work, 16);
        }
        for frontend in [Frontend::V2Http, Frontend::V2Grpc, Frontend::V2Stream] {
            if !quick || (frontend != Frontend::V2Stream && work != Work::AddSub) {
                [1, 16].into_iter().for_each(|c| add(Client::PerfAnalyzer, frontend, work, c));
            }
        }
        let own: &[usize] = if quick { few } else { &AT_ONCE };
        for frontend in Frontend::ALL {
            own.iter().for_each(|&c| add(Client::Own, frontend, work, c));
        }
    }
    for &bytes in JSON.iter().skip(if quick { 2 } else { 0 }) {
        add(Client::Own, Frontend::V2Json, Work::Identity(bytes), 1);
    }
    for work in [Work::Identity(MEDIUM), Work::Identity(LARGE)] {
        add(Client::Wrk, Frontend::V2Http, work, 1);
        add(Client::H2load, Frontend::V2Grpc, work, 1);
        if !quick && work == Work::Identity(MEDIUM) {
            add(Client::PerfAnalyzer, Frontend::V2Http, work, 1);
            add(Client::PerfAnalyzer, Frontend::V2Grpc, work, 1);
            add(Client::Own, Frontend::V2Http, work, 4);
            add(Client::Own, Frontend::V2Grpc, work, 4);
        }
        for frontend in Frontend::ALL.into_iter().filter(|frontend| *frontend != Frontend::V2Json) {
            if !quick || matches!(frontend, Frontend::V2Http | Frontend::V2Grpc) {
                add(Client::Own, frontend, work, 1);
            }
        }
    }
    all
}
