//! `trtserver-bench`: what a request costs the release server, beside the barest servers of the same kind.
//!
//! `cargo xtask bench` builds what is needed and runs it. docs/performance.md tells how to read the table.

mod exchange;
mod floor;
mod histogram;
mod load;
mod options;
mod process;
mod repository;
mod requests;
mod serving;
mod startup;
mod table;

use options::{Action, Options};
use std::process::ExitCode;
use table::Table;

/// Failures are sentences for the person at the terminal.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let done = match options::parse() {
        Action::Floor(floor) => floor::serve(floor),
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
    refuse_debug(options)?;
    let mut starts = Table::new(startup::COLUMNS);
    let mut rows = Table::new(serving::COLUMNS);
    startup::measure(options, &mut starts)?;
    serving::measure(options, &mut rows)?;
    if starts.is_empty() && rows.is_empty() {
        return Err("no row has that text in its name".into());
    }
    for table in [&rows, &starts].into_iter().filter(|table| !table.is_empty()) {
        println!("{}", table.aligned());
    }
    if let Some(file) = &options.csv {
        std::fs::write(file, format!("{}\n{}", rows.csv(), starts.csv()))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    }
    for remark in rows.remarks().iter().chain(starts.remarks()) {
        println!("{remark}");
    }
    rows.outcome().and(starts.outcome())
}

/// Numbers of an unoptimised build would only mislead.
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
