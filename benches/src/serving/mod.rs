//! The main table: each frontend under several clients, compared with its floor, with in-process
//! calls, and with `--vs` with another server.

mod add_sub; // a model in ONNX Runtime alone
mod cases; // the rows
mod limits; // the same work without a server
mod peer; // the other server
mod row;

use crate::Result;
use crate::clients::Clients;
use crate::exchange::Wire;
use crate::load::Target;
use crate::options::{Floor, Options};
use crate::plot::Plot;
use crate::process::{Process, forget_peak};
use crate::repository;
use crate::table::Table;
use cases::Case;
use peer::Peer;
use row::Measured;
use std::io::IsTerminal;

/// Passes with a larger spread say more about the machine than about the server.
pub const NOISY: f64 = 0.25;

pub fn measure(options: &Options, plot: &mut Plot) -> Result<Table> {
    let mut table = row::table(options.vs.is_some());
    let clients = Clients::find(options)?;
    let cases = cases::selected(options, &clients);
    let in_process_us = limits::measure(options, &clients.cores, &mut table).unwrap_or(0.0);
    if cases.is_empty() {
        return Ok(table);
    }
    let peer = match &options.vs {
        Some(address) => Some(Peer::find(address, options.vs_pid, &clients.cores)?),
        None => None,
    };
    println!("{}", head(options, &clients, peer.as_ref()));
    clients.missing().iter().for_each(|line| println!("{line}"));

    let models = repository::serving(options)?;
    let start = |floor| clients.cores.as_server(|| Process::floor(floor));
    let servers = Servers {
        server: clients.cores.as_server(|| Process::server(options, models.path()))?,
        hyper: start(Floor::Hyper)?,
        tonic: start(Floor::Tonic)?,
        peer: peer.as_ref(),
        clients: &clients,
    };
    let mut noisy = 0;
    for (number, case) in cases.iter().enumerate() {
        let name = case.name();
        show(&format!("{}/{} {name}", number + 1, cases.len()));
        match servers.measure(options, case) {
            Ok(measured) => {
                noisy += usize::from(measured.spread() > NOISY);
                measured.points(case, plot);
                if let Some(problem) = &measured.peer_problem {
                    table.remark(format!("{name}: the other server: {problem}"));
                }
                table.row(measured.cells(case, peer.is_some(), in_process_us));
            }
            Err(problem) => table.failed_row(case.labels().to_vec(), &name, &problem),
        }
    }
    show("");
    remark(&mut table, noisy, cases.len(), peer.as_ref());
    Ok(table)
}

/// Settings of the measurement, in one line.
fn head(options: &Options, clients: &Clients, peer: Option<&Peer>) -> String {
    let compared =
        peer.map_or_else(String::new, |peer| format!("; compared with {}", peer.describe()));
    format!(
        "{}; {} passes of {} s, in turn with the floor{compared}",
        clients.cores.describe(),
        options.passes,
        options.pass.as_secs_f64()
    )
}

fn remark(table: &mut Table, noisy: usize, rows: usize, peer: Option<&Peer>) {
    if noisy > 0 {
        table.remark(format!(
            "noisy: in {noisy} of {rows} rows the spread of the passes exceeds {:.0} %; \
             run again when the machine is idle",
            NOISY * 100.0
        ));
    }
    if let Some(peer) = peer {
        peer.remarks().into_iter().for_each(|text| table.remark(text));
    }
}

/// Prints progress.
fn show(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{text:<60}\r");
    } else if !text.is_empty() {
        eprintln!("{text}");
    }
}

/// All servers under load.
struct Servers<'s> {
    server: Process,
    hyper: Process,
    tonic: Process,
    peer: Option<&'s Peer>,
    clients: &'s Clients,
}

#[derive(Clone, Copy)]
enum Side {
    Floor,
    Ours,
    Peer,
}

impl Servers<'_> {
    /// Floor, server, peer and back, so that other load on the machine affects all of them.
    fn measure(&self, options: &Options, case: &Case) -> Result<Measured> {
        let ours = self.server.target();
        let floor = match case.workload.frontend.wire() {
            Wire::Http1 => self.hyper.target(),
            Wire::Grpc | Wire::Stream => self.tonic.target(),
        };
        let peer = self.peer.and_then(|peer| peer.target_for(case.workload));
        let pids = [&Some(ours), &peer].map(|target| target.and_then(|target: Target| target.pid));
        pids.into_iter().flatten().for_each(forget_peak);
        let mut measured = Measured::default();
        let mut sides = [Side::Floor, Side::Ours, Side::Peer];
        for _ in 0..options.passes {
            for side in sides {
                let pass =
                    |target| self.clients.pass(case.client, target, case.workload, options.pass);
                match (side, &peer) {
                    (Side::Floor, _) => measured.floor.extend(self.clients.floor_pass(
                        case.client,
                        &floor,
                        case.workload,
                        options.pass,
                    )?),
                    (Side::Ours, _) => measured.ours.push(pass(&ours)?),
                    // Failures of the peer do not drop our figures.
                    (Side::Peer, Some(target)) if measured.peer_problem.is_none() => {
                        match pass(target) {
                            Ok(pass) => measured.peer.push(pass),
                            Err(problem) => measured.peer_problem = Some(problem),
                        }
                    }
                    (Side::Peer, _) => {}
                }
            }
            sides.reverse();
        }
        if measured.peer_problem.is_some() {
            measured.peer.clear();
        }
        measured.peaks =
            pids.map(|pid| pid.and_then(|pid| crate::process::memory(pid, "VmHWM").ok()));
        Ok(measured)
    }
}
