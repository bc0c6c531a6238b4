//! `soak --requests N`: the soak test as a program. Exits with status 1 if a response was wrong or missing. `cargo xtask soak` runs it against a release build; TRTSERVER_DIST names the install.

use std::process::ExitCode;
use trtserver_tests::soak;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let requests = match args.as_slice() {
        [] => Some(1_000_000),
        [flag, number] if flag == "--requests" => number.parse().ok(),
        _ => None,
    };
    let Some(requests) = requests else {
        eprintln!("usage: soak [--requests N]");
        return ExitCode::FAILURE;
    };
    let server = soak::server().start();
    let report =
        soak::run(&server, requests, |done, kib| println!("{done:>10} requests {kib:>9} KiB"));
    println!(
        "{} correct responses, {} requests cancelled, {} wrong or lost, {:.0} requests/s",
        report.right,
        report.cancelled,
        report.wrong,
        report.per_second()
    );
    if let Some((first, last)) = report.memory.first_and_last() {
        let slope = report.memory.slope();
        println!("memory {first} KiB to {last} KiB, slope {slope:+.1} KiB per 100,000 requests");
    }
    for example in &report.examples {
        println!("wrong: {example}");
    }
    let ended = server.stop();
    if !ended.success() {
        println!("the server ended with {ended}");
    }
    if report.wrong == 0 && ended.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
