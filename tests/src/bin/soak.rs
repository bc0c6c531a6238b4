//! `soak --requests N`: the soak test as a program; `soak --attack`: the overload test;
//! `soak --repository` and `soak --reloads`: models that change under load; `soak --certificates`:
//! certificates that change under load; `soak --rolling-restart`: three servers behind Envoy, with
//! and without a drain delay; `soak --sharing`: the rate limiter, turns of clients and the response
//! cache with nested requests, reloads and cancellations. Exits with status 1 if a response was wrong
//! or missing, or a promise did not hold. `cargo xtask soak` runs it against a release build;
//! TRTSERVER_DIST names the install.

use std::process::ExitCode;
use std::time::{Duration, Instant};
use trtserver_tests::rolling_restart::restart_behind_envoy;
use trtserver_tests::tls::rotate;
use trtserver_tests::{attack, live_repository, reloads, sharing, soak};

const USAGE: &str = "usage: soak [--requests N] | soak --attack [--seconds N] [--only NAME] | \
                     soak --repository [--seconds N] | soak --reloads [N] | soak --certificates [--seconds N] | \
                     soak --rolling-restart [N] | soak --sharing [--seconds N]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => run_soak(1_000_000),
        ["--requests", number] => number.parse().map_or_else(|_| usage(), run_soak),
        ["--repository"] => change_repository(120),
        ["--repository", "--seconds", number] => {
            number.parse().map_or_else(|_| usage(), change_repository)
        }
        ["--reloads"] => reload(100),
        ["--reloads", number] => number.parse().map_or_else(|_| usage(), reload),
        ["--certificates"] => rotate_certificates(60),
        ["--certificates", "--seconds", number] => {
            number.parse().map_or_else(|_| usage(), rotate_certificates)
        }
        ["--rolling-restart"] => restart_servers(100_000),
        ["--rolling-restart", number] => number.parse().map_or_else(|_| usage(), restart_servers),
        ["--sharing"] => share(600),
        ["--sharing", "--seconds", number] => number.parse().map_or_else(|_| usage(), share),
        ["--attack", options @ ..] => run_attack(options),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::FAILURE
}

fn run_attack(options: &[&str]) -> ExitCode {
    let (mut seconds, mut only) = (300, "");
    for option in options.chunks(2) {
        match *option {
            ["--seconds", number] => match number.parse() {
                Ok(number) => seconds = number,
                Err(_) => return usage(),
            },
            ["--only", name] => only = name,
            _ => return usage(),
        }
    }
    // A connection that fails is counted as an error of its client; its backtrace says nothing
    // more.
    std::panic::set_hook(Box::new(|_| ()));
    let server = attack::server().start();
    let attacked = Duration::from_secs(seconds);
    let other = attack::server().start();
    let quiet = attacked.min(Duration::from_secs(20));
    let report = attack::run(&server, other, quiet, attacked, only);
    println!("{report}");
    let violations = report.violations();
    for violation in &violations {
        println!("violated: {violation}");
    }
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn change_repository(seconds: u64) -> ExitCode {
    let server = live_repository::server().start();
    let begin = Instant::now();
    let rounds = std::cell::Cell::new(0);
    let kib = server.resident_kib();
    live_repository::change(&server, |round| {
        rounds.set(round);
        begin.elapsed() < Duration::from_secs(seconds)
    });
    let (rounds, after) = (rounds.get(), server.resident_kib());
    println!("{rounds} rounds of changes, no wrong response; memory {kib} KiB to {after} KiB");
    if server.stop().success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn reload(reloads: usize) -> ExitCode {
    let server = reloads::server(Duration::from_millis(200)).start();
    let report = reloads::run(&server, Duration::from_secs(20), reloads);
    println!("{report}");
    let flat = report.kib[1] < report.kib[0] + 8 * 1024;
    let near = report.loading <= report.quiet * 3 / 2;
    if !near {
        println!("missed: p99 within 1.5 times of the quiet one");
    }
    let right = report.failed == 0 && flat && server.stop().success();
    if right && near { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn share(seconds: u64) -> ExitCode {
    let server = sharing::server().start();
    let report = sharing::run(&server, Duration::from_secs(seconds));
    println!("{report}");
    if report.is_good() && server.stop().success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rotate_certificates(seconds: u64) -> ExitCode {
    let report = rotate(Duration::from_secs(seconds));
    println!("{report}");
    if let Some(failure) = &report.failure {
        println!("failed: {failure}");
    }
    let right = report.failed == 0 && report.seen == report.certificates;
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The servers lose no request with a delay; without, what they lose is printed.
fn restart_servers(requests: u64) -> ExitCode {
    let with = restart_behind_envoy(3, requests);
    println!("{with}");
    println!("{}", restart_behind_envoy(0, requests));
    if with.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_soak(requests: u64) -> ExitCode {
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
