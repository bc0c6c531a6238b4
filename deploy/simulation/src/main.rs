//! `trtserver-simulation`: prints the tables of docs/scale.md and writes its plots.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use trtserver_simulation::experiments::{ExperimentSize, run_experiments};
use trtserver_simulation::fleet::FleetSettings;

const USAGE: &str = "usage: trtserver-simulation [--seed N] [--gpu-price DOLLARS_PER_HOUR] [--cpu-price DOLLARS_PER_HOUR] [--out DIR]";

struct Arguments {
    seed: u64,
    gpu_price: f64,
    cpu_price: f64,
    /// For the plots.
    out: PathBuf,
}

fn parse_arguments(words: &[String]) -> Result<Arguments, String> {
    let mut parsed = Arguments { seed: 1, gpu_price: 1.0, cpu_price: 0.3, out: PathBuf::from(".") };
    for pair in words.chunks(2) {
        let [flag, value] = pair else {
            return Err(format!("`{}` needs a value\n{USAGE}", pair.join(" ")));
        };
        let price = || match value.parse::<f64>() {
            Ok(price) if price >= 0.0 && price.is_finite() => Ok(price),
            _ => Err(format!("`{flag} {value}`: expected a price such as 0.35\n{USAGE}")),
        };
        match flag.as_str() {
            "--seed" => {
                let wrong = |e| format!("`--seed {value}`: expected a number: {e}\n{USAGE}");
                parsed.seed = value.parse().map_err(wrong)?;
            }
            "--gpu-price" => parsed.gpu_price = price()?,
            "--cpu-price" => parsed.cpu_price = price()?,
            "--out" => parsed.out = PathBuf::from(value),
            _ => return Err(format!("unknown argument `{flag}`\n{USAGE}")),
        }
    }
    Ok(parsed)
}

fn run() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let arguments = parse_arguments(&words)?;
    let fleet = FleetSettings::thousand(arguments.seed, arguments.gpu_price, arguments.cpu_price);
    let begin = Instant::now();
    let results = run_experiments(&fleet, &ExperimentSize::FULL);
    println!("{}", results.tables);
    for (name, svg) in results.plots {
        let path = arguments.out.join(name);
        std::fs::write(&path, svg).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    eprintln!("simulated in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}
