//! `trtserver-gpu-test`: the checks and measurements that need a GPU, on a machine that may have
//! nothing but a driver. Runs the install that it lies in; without a GPU it says so and succeeds.
//! See docs/gpu.md.

mod checks;
mod cuda;
mod install;
mod models;
mod onnx_model;
mod onnx_runtime;
mod onnx_steps;
mod region;
mod report;
mod tensors;

use cuda::Driver;
use report::Report;
use std::process::ExitCode;

const USAGE: &str = "usage: trtserver-gpu-test [--list] [--requests N] [--only NAME] [NAME...]\n  \
                     Runs the checks whose names contain one of NAME, or all. --requests: of the memory check (default 100000).";

/// What the command line asks for.
pub struct Options {
    names: Vec<String>,
    /// Number of requests of the memory check.
    requests: usize,
}

fn main() -> ExitCode {
    // SAFETY: the first statement of the program, which has no other thread yet. The program is
    // also started without cargo, which sets the variable for tests.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("trtserver-gpu-test: {e}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let driver = match Driver::open() {
        Ok(driver) => driver,
        Err(reason) => {
            println!("SKIPPED: no check was run, because this machine has no usable GPU: {reason}");
            return ExitCode::SUCCESS;
        }
    };
    if driver.is_test_double() {
        println!("The CUDA driver is a test double: nothing below is a result on a GPU.");
    }
    for device in driver.devices() {
        let (major, minor) = device.compute;
        let mib = device.memory >> 20;
        println!(
            "GPU {}: {}, {}, {major}.{minor}, {mib} MiB",
            device.ordinal, device.name, device.uuid
        );
    }
    let mut report = Report::new();
    for check in checks::ALL {
        let chosen = options.names.iter().any(|name| check.name.contains(&**name));
        if options.names.is_empty() || chosen {
            report.run(check.name, || (check.run)(&driver, &options));
        }
    }
    report.finish()
}

/// `None` if the program is done.
fn options() -> Result<Option<Options>, String> {
    let mut options = Options { names: Vec::new(), requests: 100_000 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match &*word {
            "--list" => {
                checks::ALL.iter().for_each(|check| println!("{:<24}{}", check.name, check.what));
                return Ok(None);
            }
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(None);
            }
            "--requests" => {
                let number = words.next().and_then(|n| n.parse().ok());
                options.requests = number.ok_or("--requests needs a number")?;
            }
            "--only" => options.names.push(words.next().ok_or("--only needs the name of a check")?),
            word if word.starts_with('-') => return Err(format!("unknown flag {word}")),
            _ => options.names.push(word),
        }
    }
    Ok(Some(options))
}
