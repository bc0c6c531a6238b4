//! `trtserver-gate`: counts the cost of a request and compares it with the ceilings. Nothing is
//! timed, so the result is the same on any machine. `cargo xtask gate` builds everything and runs
//! it; see docs/performance.md, "The gate".

mod ceilings;
mod client;
mod figures;
mod measure;
mod requests;

use ceilings::{CEILINGS, Ceiling, IDLE_CEILINGS};
use figures::Figures;
use measure::instructions::Executed;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread::ScopedJoinHandle;

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
    let idle = measure::idle::measure(IDLE_CEILINGS);
    let figures = measure_all(CEILINGS);
    if print_ceilings {
        print!("{}", figures::as_source(CEILINGS, &figures));
        return ExitCode::SUCCESS;
    }
    print!("{}", figures::table(CEILINGS, &figures));
    let (mut above, far_below) = figures::judge(CEILINGS, &figures);
    for (ceiling, bytes) in IDLE_CEILINGS.iter().zip(idle) {
        let line = format!(
            "an idle connection, {:?}: {bytes:.0} bytes, the ceiling is {:.0}",
            ceiling.wire, ceiling.bytes
        );
        println!("{line}");
        above.extend((bytes > ceiling.bytes).then_some(line));
    }
    for line in &far_below {
        println!("lower it: {line}");
    }
    for line in &above {
        println!("too much: {line}");
    }
    if above.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Counts instructions on one core, and everything else on another at the same time. With one core
/// they take turns, since a request is sent when all threads of its server sleep.
fn measure_all(ceilings: &[Ceiling]) -> Vec<Figures> {
    let cores = cores();
    let mut figures = vec![Figures::default(); ceilings.len()];
    let executed = std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            stay_on(cores[0]);
            count_allocations(ceilings, &mut figures);
            count_syscalls(ceilings, &mut figures);
        });
        if cores.len() == 1 {
            wait_for(others);
            return count_instructions(ceilings);
        }
        stay_on(cores[1]);
        let executed = count_instructions(ceilings);
        wait_for(others);
        executed
    });
    for (i, found) in executed {
        figures[i].instructions = Some(found.instructions);
        figures[i].atomics = Some(found.atomics);
    }
    figures
}

fn wait_for(thread: ScopedJoinHandle<()>) {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic));
}

/// The cores that this process may use.
fn cores() -> Vec<usize> {
    let all = sched_getaffinity(None).unwrap_or_else(|e| panic!("which cores there are: {e}"));
    (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).collect()
}

/// Pins this thread, and the servers and threads that it starts, to one core, so that thread counts
/// and wake-ups do not depend on the machine.
fn stay_on(core: usize) {
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).unwrap_or_else(|e| panic!("cannot stay on core {core}: {e}"));
}

fn count_allocations(ceilings: &[Ceiling], figures: &mut [Figures]) {
    let rows: Vec<&str> = ceilings.iter().map(|ceiling| ceiling.row).collect();
    for (figures, counts) in figures.iter_mut().zip(measure::counts::measure(&rows)) {
        figures.allocations = Some(counts.allocations);
        figures.allocated = Some(counts.allocated);
        figures.copied = cfg!(target_arch = "x86_64").then_some(counts.copied);
    }
}

fn count_syscalls(ceilings: &[Ceiling], figures: &mut [Figures]) {
    if !measure::is_alive("strace") {
        return println!("system calls are not counted: strace is missing");
    }
    let (places, rows) = with_ceiling(ceilings, |ceiling| ceiling.syscalls);
    for (i, found) in places.into_iter().zip(measure::syscalls::measure(&rows)) {
        figures[i].syscalls = Some(found.all);
        figures[i].by_name = found.by_name;
    }
}

/// Figures with the number of their row.
fn count_instructions(ceilings: &[Ceiling]) -> Vec<(usize, Executed)> {
    if !measure::is_alive("valgrind") {
        println!("instructions are not counted: valgrind is missing");
        return Vec::new();
    }
    let (places, rows) = with_ceiling(ceilings, |ceiling| ceiling.instructions);
    places.into_iter().zip(measure::instructions::measure(&rows)).collect()
}

/// Numbers and names of the rows that have a ceiling: the others are not measured.
fn with_ceiling(
    ceilings: &[Ceiling],
    ceiling_in: fn(&Ceiling) -> f64,
) -> (Vec<usize>, Vec<&'static str>) {
    let some = ceilings.iter().enumerate().filter(|(_, ceiling)| !ceiling_in(ceiling).is_nan());
    some.map(|(i, ceiling)| (i, ceiling.row)).unzip()
}
