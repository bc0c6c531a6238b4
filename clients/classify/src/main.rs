//! `trtserver-classify`: example client. Classifies pictures of digits over all four frontends: v1
//! and v2, HTTP and gRPC.
//!
//! `v1.rs` and `v2.rs` each show one protocol, to copy from.

mod picture;
mod v1;
mod v2;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use trtserver_client::blocking::v2::BlockingClient;
use trtserver_client::{Bytes, Protocol, Settings};

/// The tensors of the model `digits`.
const INPUT: &str = "IMAGE";
const OUTPUT: &str = "SCORES";

/// Limit of every request, generous for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The class with the highest score.
struct Best {
    label: String,
    score: f64,
}

fn main() -> ExitCode {
    let matches = build_command().get_matches();
    match run(&matches) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("trtserver-classify: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn build_command() -> Command {
    let option =
        |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    Command::new("trtserver-classify")
        .about("Classifies pictures of digits over v1 HTTP, v1 gRPC, v2 HTTP and v2 gRPC")
        .version(env!("CARGO_PKG_VERSION"))
        .arg(
            option("http", "HOST:PORT")
                .default_value("127.0.0.1:8000")
                .help("Address of the server's HTTP frontend"),
        )
        .arg(
            option("grpc", "HOST:PORT")
                .default_value("127.0.0.1:8001")
                .help("Address of the server's gRPC frontend"),
        )
        .arg(
            option("model", "NAME")
                .default_value("digits")
                .action(ArgAction::Append)
                .help("Model to use (repeatable: each classifies each picture)"),
        )
        .arg(
            option("wait", "SECONDS")
                .value_parser(value_parser!(u64))
                .help("Wait until the server is ready; without pictures, only wait"),
        )
        .arg(option("expect", "LABEL").help("Exit with code 1 if any result differs"))
        .arg(
            Arg::new("picture")
                .value_name("PICTURE")
                .value_parser(value_parser!(PathBuf))
                .action(ArgAction::Append)
                .required_unless_present("wait")
                .help("PNG files, dark on light, width and height multiples of 8"),
        )
}

/// True if every request succeeded with the expected result.
fn run(matches: &ArgMatches) -> Result<bool, String> {
    let settings = |flag: &str, protocol| {
        let address = matches.get_one::<String>(flag).map_or("", String::as_str);
        Settings::new(address).protocol(protocol).deadline(Some(TIMEOUT))
    };
    let (http, grpc) = (settings("http", Protocol::Http), settings("grpc", Protocol::Grpc));
    if let Some(seconds) = matches.get_one::<u64>("wait") {
        wait_for_server(&http, Duration::from_secs(*seconds))?;
    }
    let expected = matches.get_one::<String>("expect").map(String::as_str);
    let models: Vec<_> = matches.get_many::<String>("model").unwrap_or_default().collect();
    let mut success = true;
    for file in matches.get_many::<PathBuf>("picture").unwrap_or_default() {
        let picture = Bytes::from(picture::read_picture(file)?);
        println!("{}", file.display());
        for model in &models {
            if models.len() > 1 {
                println!(" {model}");
            }
            success &= classify(&http, &grpc, model, &picture, expected);
        }
    }
    Ok(success)
}

/// Classifies one picture over the four frontends; prints a line for each.
fn classify(
    http: &Settings,
    grpc: &Settings,
    model: &str,
    picture: &Bytes,
    expected: Option<&str>,
) -> bool {
    let results = [
        ("v1 HTTP", v1::classify_v1(http, model, picture.clone())),
        ("v1 gRPC", v1::classify_v1(grpc, model, picture.clone())),
        ("v2 HTTP", v2::classify_v2(http, model, picture.clone())),
        ("v2 gRPC", v2::classify_v2(grpc, model, picture.clone())),
    ];
    let mut success = true;
    for (frontend, result) in results {
        match result {
            Ok(best) => {
                let wrong = expected.filter(|label| *label != best.label);
                let remark = wrong.map_or(String::new(), |label| format!("  expected {label}"));
                println!("  {frontend}   {:<6} ({:.3}){remark}", best.label, best.score);
                success &= wrong.is_none();
            }
            Err(problem) => {
                println!("  {frontend}   failed: {problem}");
                success = false;
            }
        }
    }
    success
}

fn wait_for_server(http: &Settings, limit: Duration) -> Result<(), String> {
    let client = BlockingClient::new(http).map_err(|e| e.to_string())?;
    let start = Instant::now();
    loop {
        let last = match client.is_ready() {
            Ok(true) => return Ok(()),
            Ok(false) => "the server is not ready".to_owned(),
            Err(error) => error.to_string(),
        };
        if start.elapsed() >= limit {
            return Err(format!("not ready after {} seconds: {last}", limit.as_secs()));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
