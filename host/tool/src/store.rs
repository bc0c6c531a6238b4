//! `trtserver store check URL`: why a model repository in an object store can or cannot be read,
//! without a server.

use super::{finish, parse_arguments};
use clap::{Arg, Command, value_parser};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trtserver_model_store::{StoreLocation, check_store};

/// Runs `trtserver store` with these arguments. Exit status: 0 = the repository can be read, 1 = it
/// cannot, 2 = wrong usage.
pub fn run_store_check(args: impl Iterator<Item = OsString>) -> ExitCode {
    let check = Command::new("check")
        .about("Prints each source of credentials that is tried, and makes the calls that a load makes")
        .arg(
            Arg::new("url")
                .value_name("URL")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("gs://BUCKET/PATH, s3://BUCKET/PATH, s3://HOST:PORT/BUCKET/PATH or as://ACCOUNT/CONTAINER/PATH"),
        )
        .arg(
            Arg::new("timeout")
                .long("store-timeout-secs")
                .value_name("N")
                .default_value("30")
                .value_parser(value_parser!(u64).range(1..))
                .help("How long the store may send nothing, and how long failed calls are repeated"),
        );
    let command = Command::new("trtserver store")
        .about("Checks model repositories in object stores. No server is needed.")
        .after_help("Exit status: 0 = the repository can be read, 1 = it cannot, 2 = wrong usage.")
        .subcommand_required(true)
        .subcommand(check);
    let matches = match parse_arguments(command, args) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    let Some(matches) = matches.subcommand_matches("check") else { return ExitCode::from(2) };
    let url = matches.get_one::<PathBuf>("url").cloned().unwrap_or_default();
    let timeout = matches.get_one::<u64>("timeout").copied().unwrap_or_default();
    let readable = check_url(&url, Duration::from_secs(timeout));
    finish(readable.map(|readable| ExitCode::from(u8::from(!readable))), 2)
}

fn check_url(url: &Path, timeout: Duration) -> Result<bool, String> {
    let url = match StoreLocation::parse(url)? {
        StoreLocation::Object(url) => url,
        StoreLocation::Local(path) => {
            return Err(format!("'{}' is not the URL of an object store", path.display()));
        }
    };
    check_store(&url, timeout, &mut std::io::stdout().lock()).map_err(|e| e.to_string())
}
