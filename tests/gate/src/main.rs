//! `trtserver-gate`: counts the cost of a request and compares it with the ceilings. Nothing is
//! timed, so the result is the same on any machine. `cargo xtask gate` builds everything and runs
//! it; see docs/performance.md, "The gate".

mod ceilings;
mod client;
mod figures;
mod measure;
mod requests;

use ceilings::{CEILINGS, Ceiling};
use figures::Figures;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut print_ceilings = false;
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--ceilings" => print_ceilings = true,
            _ => {
                eprintln!("trtserver-gate: {arg}: the one flag is --ceilings");
                return ExitCode::from(2);
            }
        }
    }
    if let Err(e) = stay_on_one_core() {
        eprintln!("trtserver-gate: cannot stay on one core: {e}");
        return ExitCode::FAILURE;
    }
    let figures = measure_all(CEILINGS);
    if print_ceilings {
        print!("{}", figures::as_source(CEILINGS, &figures));
        return ExitCode::SUCCESS;
    }
    print!("{}", figures::table(CEILINGS, &figures));
    let (above, far_below) = figures::judge(CEILINGS, &figures);
    for line in &far_below {
        println!("lower it: {line}");
    }
    for line in &above {
        println!("too much: {line}");
    }
    if above.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Pins this process and its servers to one core, so that thread counts and wake-ups do not depend
/// on the machine.
fn stay_on_one_core() -> rustix::io::Result<()> {
    let all = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    if let Some(first) = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)) {
        one.set(first);
    }
    sched_setaffinity(None, &one)
}

fn measure_all(ceilings: &[Ceiling]) -> Vec<Figures> {
    let rows: Vec<&str> = ceilings.iter().map(|ceiling| ceiling.row).collect();
    let counts = measure::counts::measure(&rows);
    let mut figures: Vec<Figures> = counts
        .iter()
        .map(|counts| Figures {
            allocations: Some(counts.allocations),
            allocated: Some(counts.allocated),
            copied: cfg!(target_arch = "x86_64").then_some(counts.copied),
            ..Figures::default()
        })
        .collect();
    // Rows without a ceiling are not measured.
    let with_ceiling = |of: fn(&Ceiling) -> f64| -> (Vec<usize>, Vec<&str>) {
        let some = ceilings.iter().enumerate().filter(|(_, ceiling)| !of(ceiling).is_nan());
        some.map(|(i, ceiling)| (i, ceiling.row)).unzip()
    };
    if measure::is_alive("strace") {
        let (places, rows) = with_ceiling(|ceiling| ceiling.syscalls);
        for (i, found) in places.into_iter().zip(measure::syscalls::measure(&rows)) {
            figures[i].syscalls = Some(found.all);
            figures[i].by_name = found.by_name;
        }
    } else {
        println!("system calls are not counted: strace is missing");
    }
    if measure::is_alive("valgrind") {
        let (places, rows) = with_ceiling(|ceiling| ceiling.instructions);
        for (i, found) in places.into_iter().zip(measure::instructions::measure(&rows)) {
            figures[i].instructions = Some(found.instructions);
            figures[i].atomics = Some(found.atomics);
        }
    } else {
        println!("instructions are not counted: valgrind is missing");
    }
    figures
}
