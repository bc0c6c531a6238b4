//! `trtserver-classify`: shows pictures of digits to a server over all four doors, v1 and v2, HTTP and gRPC.
//!
//! It is the demonstration's client and a sample to copy from: `v1.rs` and `v2.rs` are each one protocol.

mod http;
mod picture;
mod v1;
mod v2;

use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use http::Http;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tonic::transport::{Channel, Endpoint};

/// The tensors of the model `digits`.
const INPUT: &str = "IMAGE";
const OUTPUT: &str = "SCORES";

/// No answer should take longer, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The class a model gave the highest score.
struct Best {
    label: String,
    score: f64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let matches = cli().get_matches();
    match work(&matches).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("trtserver-classify: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn cli() -> Command {
    let option =
        |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    Command::new("trtserver-classify")
        .about("Classifies pictures of digits over v1 HTTP, v1 gRPC, v2 HTTP and v2 gRPC")
        .version(env!("CARGO_PKG_VERSION"))
        .arg(
            option("http", "HOST:PORT")
                .default_value("127.0.0.1:8000")
                .help("The server's HTTP door"),
        )
        .arg(
            option("grpc", "HOST:PORT")
                .default_value("127.0.0.1:8001")
                .help("The server's gRPC door"),
        )
        .arg(option("model", "NAME").default_value("digits").help("The model to ask"))
        .arg(
            option("wait", "SECONDS")
                .value_parser(value_parser!(u64))
                .help("First wait until the server is ready; without pictures, only wait"),
        )
        .arg(option("expect", "LABEL").help("End with exit code 1 if an answer is another one"))
        .arg(
            Arg::new("picture")
                .value_name("PICTURE")
                .value_parser(value_parser!(PathBuf))
                .action(ArgAction::Append)
                .required_unless_present("wait")
                .help("PNG files, dark on light, sides multiples of 8"),
        )
}

/// True when every door answered, and answered as expected.
async fn work(matches: &ArgMatches) -> Result<bool, String> {
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let http = Http::new(text("http"));
    if let Some(seconds) = matches.get_one::<u64>("wait") {
        wait(&http, Duration::from_secs(*seconds)).await?;
    }
    let grpc = text("grpc");
    let channel = Endpoint::from_shared(format!("http://{}", grpc.trim_start_matches("http://")))
        .map_err(|e| format!("`{grpc}` is no address: {e}"))?
        .connect_timeout(PATIENCE)
        .timeout(PATIENCE)
        .connect_lazy();
    let expected = matches.get_one::<String>("expect").map(String::as_str);
    let mut fine = true;
    for file in matches.get_many::<PathBuf>("picture").unwrap_or_default() {
        let picture = Bytes::from(picture::read(file)?);
        println!("{}", file.display());
        fine &= ask(&http, &channel, text("model"), &picture, expected).await;
    }
    Ok(fine)
}

/// One picture over the four doors, one line each.
async fn ask(
    http: &Http,
    channel: &Channel,
    model: &str,
    picture: &Bytes,
    expected: Option<&str>,
) -> bool {
    let late = |_| Err(format!("nothing within {} seconds", PATIENCE.as_secs()));
    let answers = [
        (
            "v1 HTTP",
            tokio::time::timeout(PATIENCE, v1::over_http(http, model, picture.clone()))
                .await
                .unwrap_or_else(late),
        ),
        ("v1 gRPC", v1::over_grpc(channel.clone(), model, picture.clone()).await),
        (
            "v2 HTTP",
            tokio::time::timeout(PATIENCE, v2::over_http(http, model, picture.clone()))
                .await
                .unwrap_or_else(late),
        ),
        ("v2 gRPC", v2::over_grpc(channel.clone(), model, picture.clone()).await),
    ];
    let mut fine = true;
    for (door, answer) in answers {
        match answer {
            Ok(best) => {
                let wrong = expected.filter(|label| *label != best.label);
                let remark = wrong.map_or(String::new(), |label| format!("  expected {label}"));
                println!("  {door}   {:<6} ({:.3}){remark}", best.label, best.score);
                fine &= wrong.is_none();
            }
            Err(problem) => {
                println!("  {door}   no answer: {problem}");
                fine = false;
            }
        }
    }
    fine
}

async fn wait(http: &Http, limit: Duration) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let last = match tokio::time::timeout(PATIENCE, http.get("/v2/health/ready")).await {
            Ok(Ok(answer)) if answer.status == 200 => return Ok(()),
            Ok(Ok(answer)) => format!("it says HTTP {}", answer.status),
            Ok(Err(problem)) => problem,
            Err(_) => "no answer".to_owned(),
        };
        if start.elapsed() >= limit {
            return Err(format!("not ready after {} seconds: {last}", limit.as_secs()));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// A gRPC failure in one line, with its cause where the connection itself failed.
fn status_text(status: &tonic::Status) -> String {
    match std::error::Error::source(status) {
        Some(cause) => http::innermost(cause),
        None => format!("{:?}: {}", status.code(), status.message()),
    }
}
