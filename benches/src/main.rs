//! `trtserver-bench`: throughput, latency, CPU time and memory of the release server, compared with
//! minimal servers.
//!
//! `cargo xtask bench` builds what is needed and runs it. docs/performance.md explains the tables.

mod backends;
mod clients;
mod cores;
mod equal_rate; // beside an echo with the same throughput
mod exchange;
mod floor;
mod histogram;
mod json; // reading and writing tensors as JSON
mod load;
mod load_tool; // trtserver-perf beside other load generators
mod metrics;
mod onnx; // ONNX Runtime, called directly
mod options;
mod pairs; // A B B A
mod perceptron; // a model of 17 µs
mod plot;
mod polling;
mod process;
mod repository;
mod requests;
mod response_cache;
mod scaling;
mod schedulers;
mod serving;
mod socket_floor; // an echo without a library
mod startup;
mod status;
mod table;
mod tracing;
mod triton; // backends built for Triton

use options::{Action, Options};
use plot::Plot;
use std::process::ExitCode;
use table::Table;

/// Errors are messages for the user.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let done = match options::parse() {
        Action::Floor(floor, busy) => floor::serve(floor, busy),
        Action::Measure(options) => measure(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("trtserver-bench: error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<()> {
    if let Some(folder) = &options.write_models {
        repository::write(options, folder)?;
        println!(
            "{}: serve it, with another `backend:` for `identity` where needed",
            folder.display()
        );
        return Ok(());
    }
    if options.check_only {
        println!("--check-only: the figures below mean nothing");
    } else {
        refuse_debug(options)?;
    }
    let (mut plot, mut growth) = (Plot::default(), scaling::GrowthPlot::default());
    let mut tables = Vec::new();
    // What was measured before a part failed is shown.
    let measured = measure_rows(options, &mut tables, &mut plot, &mut growth);
    tables.retain(|table| !table.is_empty());
    if tables.is_empty() {
        measured?;
        return Err("no row has that text in its name".into());
    }
    for table in &tables {
        println!("{}", table.aligned());
    }
    if let Some(file) = &options.csv {
        let all: Vec<String> = tables.iter().map(Table::csv).collect();
        std::fs::write(file, all.join("\n"))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    }
    for remark in tables.iter().flat_map(Table::remarks) {
        println!("{remark}");
    }
    if let Some(file) = &options.svg {
        // A run has the one or the other: the rows of growth are measured only with
        // `--only scaling`.
        if growth.is_empty() { plot.write(file)? } else { growth.write(file)? }
    }
    measured?;
    tables.iter().try_for_each(Table::outcome)
}

/// Adds the tables of all parts that have rows to measure.
fn measure_rows(
    options: &Options,
    tables: &mut Vec<Table>,
    plot: &mut Plot,
    growth: &mut scaling::GrowthPlot,
) -> Result<()> {
    let mut starts = Table::new(startup::COLUMNS);
    startup::measure(options, &mut starts)?;
    let mut polls = Table::new(polling::COLUMNS);
    polling::measure(options, &mut polls)?;
    tables.extend([serving::measure(options, plot)?, equal_rate::measure(options)?]);
    tables.extend([starts, polls]);
    tables.extend(backends::measure(options)?);
    tables.extend(schedulers::measure(options)?);
    tables.extend(scaling::measure(options, growth)?);
    tables.push(metrics::measure(options)?);
    tables.push(response_cache::measure(options)?);
    tables.push(tracing::measure(options)?);
    tables.push(json::measure(options)?);
    tables.extend(load_tool::measure(options)?);
    tables.extend(triton::measure(options)?);
    Ok(())
}

/// Refuses debug builds.
fn refuse_debug(options: &Options) -> Result<()> {
    if cfg!(debug_assertions) {
        return Err("this is a debug build; `cargo xtask bench` makes a release build".into());
    }
    let stamp = options.dist.join("profile");
    match std::fs::read_to_string(&stamp) {
        Ok(profile) if profile.trim() == "release" => Ok(()),
        _ => Err(format!(
            "{} does not say that the server there is a release build; `cargo xtask bench` makes one",
            stamp.display()
        )),
    }
}
