//! The command line: every flag with its help, and the checks among flags, with perf_client's texts.

use crate::compare::Requirement;
use crate::engine::Distribution;
use crate::settings::{
    Action, Comparison, Generation, InputData, Program, Protocol, Range, Settings,
};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Why there is nothing to do.
pub enum Stop {
    /// Help or version, for stdout.
    Shown(String),
    /// An error of usage.
    Wrong(String),
}

const MEASUREMENT: &str = "Measurement";
const INPUT: &str = "Input data";
const SERVER: &str = "Server";
const OUTPUT: &str = "Output and verdicts";

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn short(letter: char, value: &'static str, help: &'static str) -> Arg {
    let name: &'static str = match letter {
        'm' => "model",
        'x' => "version-of-model",
        'b' => "batch-size",
        't' => "old-concurrency",
        'c' => "old-limit",
        'u' => "url",
        'i' => "protocol",
        'f' => "csv",
        _ => "header",
    };
    Arg::new(name).short(letter).value_name(value).help(help)
}

fn letter(name: &'static str, letter: char, help: &'static str) -> Arg {
    Arg::new(name).short(letter).action(ArgAction::SetTrue).help(help)
}

fn measurement() -> Vec<Arg> {
    vec![
        option(
            "concurrency-range",
            "START:END:STEP",
            "Requests in flight; END 0 goes on until the latency limit (1:1:1)",
        ),
        option(
            "request-rate-range",
            "START:END:STEP",
            "Requests per second; each is sent when it is due, and latency counts from then",
        ),
        option(
            "request-distribution",
            "NAME",
            "Gaps between requests at a rate: `constant` or `poisson` (constant)",
        ),
        option(
            "request-intervals",
            "FILE",
            "Gaps between requests in microseconds, one a line, repeated",
        ),
        switch(
            "binary-search",
            "Find the highest load within the latency limit; STEP is the precision",
        ),
        option("latency-threshold", "MS", "Stop when the latency reaches this limit (0: none)")
            .short('l'),
        option("measurement-interval", "MS", "Length of a measurement window (5000)").short('p'),
        option("max-trials", "N", "Windows until a result must be stable (10)").short('r'),
        option(
            "stability-percentage",
            "PERCENT",
            "A result is stable when three windows differ from their mean by no more (10)",
        )
        .short('s'),
        option(
            "percentile",
            "P",
            "Judge this percentile instead of the average latency (-1: average)",
        )
        .allow_hyphen_values(true),
        option("rounds", "N", "Rounds over several servers or models, in the order A B B A (2)"),
        option(
            "max-threads",
            "N",
            "Load threads (half of the cores; one is enough for most servers)",
        ),
        option("num-of-sequences", "N", "Sequences at a time with a request rate (4)"),
        option("sequence-length", "N", "Requests of a sequence, a fifth more or less (20)"),
        option("max-connections", "N", "Connections of a load thread with a request rate (256)"),
        option("calls-per-connection", "N", "gRPC calls that share a connection (16)"),
        option("timeout", "SECONDS", "A request without a response for this long has failed (30)"),
        option("seed", "N", "Seed of the Poisson schedule (1)"),
        switch("async", "Accepted: requests are always sent asynchronously").short('a'),
        switch("sync", "Accepted: see --async"),
        letter("dynamic", 'd', "Deprecated: raise the concurrency from -t to -c"),
        short('t', "N", "Deprecated: requests in flight (1)"),
        short('c', "N", "Deprecated: limit of -d (0: none)"),
        letter("profile", 'n', "Refused: servers have no profiler since v1.7"),
    ]
}

fn input() -> Vec<Arg> {
    vec![
        short('b', "N", "Batch size of a request (1)"),
        option(
            "input-data",
            "WHAT",
            "`zero`, `random`, a folder with a file for each input, or a JSON file (random)",
        )
        .action(ArgAction::Append),
        option("shape", "NAME:D,D,...", "Shape of an input without the batch (repeatable)")
            .action(ArgAction::Append),
        option("string-length", "N", "Length of random strings (128)"),
        option("string-data", "TEXT", "Text of all string elements"),
        option("shared-memory", "KIND", "Where tensors are: `none`, `system` or `cuda` (none)"),
        option(
            "output-shared-memory-size",
            "BYTES",
            "Shared memory of an output of variable size (102400)",
        ),
        letter("zero", 'z', "Deprecated: --input-data zero"),
        option("data-directory", "DIR", "Deprecated: --input-data DIR").action(ArgAction::Append),
    ]
}

fn server() -> Vec<Arg> {
    vec![
        short('m', "NAME", "Model (repeatable: each is measured)").action(ArgAction::Append),
        short('x', "VERSION", "Version of the model (the latest)").allow_hyphen_values(true),
        short(
            'u',
            "HOST:PORT",
            "Server (localhost:8000; gRPC localhost:8001); repeatable: each is measured",
        )
        .action(ArgAction::Append),
        short('i', "PROTOCOL", "HTTP or gRPC (HTTP)"),
        option(
            "generation",
            "NAME",
            "Generation of the protocol: v1 or v2 (trtserver-perf: v2, perf_client: v1)",
        ),
        switch("streaming", "Send requests on gRPC streams"),
        short('H', "NAME:VALUE", "Header of each request (repeatable)").action(ArgAction::Append),
    ]
}

fn output() -> Vec<Arg> {
    let file = |arg: Arg| arg.value_parser(value_parser!(PathBuf));
    vec![
        Arg::new("verbose").short('v').action(ArgAction::Count).help("Print each measurement window"),
        file(short('f', "FILE", "Write the results as CSV")),
        file(option("json", "FILE", "Write the results as JSON, for --compare")),
        file(option("report", "FILE", "Write a page with tables and plots (one HTML file)")),
        option("require", "CONDITION", "Exit with code 3 unless it holds at every load: such as `p99<=5ms`, `throughput>=1000`, or `stable` (repeatable)").action(ArgAction::Append),
        file(option("compare", "BEFORE AFTER", "Judge two files of --json; exit with code 4 if the second is worse").num_args(2)),
        option("tolerance", "PERCENT", "With --compare: differences up to this do not count (2)"),
        switch("progress", "Show a progress line (the default on a terminal)"),
        switch("no-progress", "Show no progress line").conflicts_with("progress"),
    ]
}

pub fn command(program: Program) -> Command {
    let (name, about) = match program {
        Program::PerfClient => ("perf_client", "Measures throughput and latency of a model"),
        Program::TrtserverPerf => (
            "trtserver-perf",
            "Measures throughput and latency of models on v1 and v2 servers, over HTTP and gRPC",
        ),
    };
    // As with getopt, the last of several values counts.
    let command = Command::new(name).about(about).args_override_self(true);
    let mut command = command.version(env!("CARGO_PKG_VERSION"));
    command = command.after_help(
        "Exit codes: 0 measured, 1 cannot be measured, 2 requests failed, 3 a --require does not hold, \
         4 --compare finds the second result worse. perf_client exits with 1 when requests fail.",
    );
    for (heading, args) in
        [(MEASUREMENT, measurement()), (INPUT, input()), (SERVER, server()), (OUTPUT, output())]
    {
        command = command.args(args.into_iter().map(|arg| arg.help_heading(heading)));
    }
    command
}

/// # Errors
/// Help, or what is wrong with the arguments.
pub fn parse(program: Program, args: impl IntoIterator<Item = OsString>) -> Result<Action, Stop> {
    let matches = command(program).try_get_matches_from(args).map_err(|e| match e.exit_code() {
        0 => Stop::Shown(e.render().to_string()),
        _ => {
            let text = e.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            Stop::Wrong(first.trim_start_matches("error: ").to_owned())
        }
    })?;
    meaning(program, &Flags(matches)).map_err(Stop::Wrong)
}

struct Flags(ArgMatches);

impl Flags {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get_one::<String>(name).map(String::as_str)
    }

    fn all(&self, name: &str) -> Vec<&str> {
        self.0.get_many::<String>(name).unwrap_or_default().map(String::as_str).collect()
    }

    fn set(&self, name: &str) -> bool {
        self.0.get_flag(name)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get_one::<PathBuf>(name).cloned()
    }

    fn number<N: std::str::FromStr>(&self, name: &str, usual: N) -> Result<N, String> {
        match self.text(name) {
            None => Ok(usual),
            Some(text) => {
                text.parse().map_err(|_| format!("--{name}: '{text}' is not a valid number"))
            }
        }
    }
}

fn meaning(program: Program, flags: &Flags) -> Result<Action, String> {
    let tolerance = flags.number("tolerance", 2.0)? / 100.0;
    if let Some(files) = flags.0.get_many::<PathBuf>("compare") {
        let files: Vec<&PathBuf> = files.collect();
        let [before, after] = files[..] else { return Err("--compare needs two files".to_owned()) };
        let (before, after) = (before.clone(), after.clone());
        return Ok(Action::Compare(Comparison { before, after, tolerance }));
    }
    if flags.set("profile") {
        return Err("-n: servers have no profiler since v1.7".to_owned());
    }
    let models: Vec<String> = flags.all("model").iter().map(|name| (*name).to_owned()).collect();
    if models.is_empty() {
        return Err("-m flag must be specified".to_owned());
    }
    let protocol = match flags.text("protocol").unwrap_or("HTTP").to_ascii_lowercase().as_str() {
        "http" => Protocol::Http,
        "grpc" => Protocol::Grpc,
        _ => return Err("protocol should be either HTTP or gRPC".to_owned()),
    };
    let generation = match (flags.text("generation"), program) {
        (Some("v1"), _) | (None, Program::PerfClient) => Generation::V1,
        (Some("v2"), _) | (None, Program::TrtserverPerf) => Generation::V2,
        (Some(other), _) => return Err(format!("--generation: '{other}' is neither v1 nor v2")),
    };
    let streaming = flags.set("streaming");
    if streaming && protocol != Protocol::Grpc {
        return Err("streaming is only allowed with gRPC protocol".to_owned());
    }
    let batch: i64 = flags.number("batch-size", 1)?;
    let window: i64 = flags.number("measurement-interval", 5000)?;
    let max_threads = flags.text("max-threads").map(|_| flags.number("max-threads", 0));
    let percentile: i64 = flags.number("percentile", -1)?;
    if batch <= 0 {
        return Err("batch size must be > 0".to_owned());
    }
    if window <= 0 {
        return Err("measurement window must be > 0 in msec".to_owned());
    }
    if max_threads == Some(Ok(0)) {
        return Err("maximum number of threads must be > 0".to_owned());
    }
    if percentile != -1 && !(1..=99).contains(&percentile) {
        return Err("percentile must be -1 for not reporting or in range (0, 100)".to_owned());
    }
    if flags.set("async") && flags.set("sync") {
        return Err("Both --async and --sync can not be specified simultaneously.".to_owned());
    }
    if streaming && flags.set("sync") {
        return Err("can not use streaming with synchronous API".to_owned());
    }
    let latency_limit_ms = flags.number("latency-threshold", 0)?;
    let binary_search = flags.set("binary-search");
    let range = range(flags, binary_search, latency_limit_ms)?;
    let positive = |name: &str, usual: usize| match flags.number(name, usual)? {
        0 => Err(format!("--{name} must be > 0")),
        number => Ok(number),
    };
    let stability: f64 = flags.number("stability-percentage", 10.0)?;
    let timeout: f64 = flags.number("timeout", 30.0)?;
    Ok(Action::Measure(Box::new(Settings {
        program,
        generation,
        protocol,
        servers: servers(flags, protocol)?,
        models,
        version: version(flags)?,
        verbose: flags.0.get_count("verbose") > 0,
        batch: batch as usize,
        range,
        binary_search,
        latency_limit_ms,
        window: Duration::from_millis(window as u64),
        max_trials: positive("max-trials", 10)?,
        stability: stability / 100.0,
        percentile: (percentile != -1).then_some(percentile as u32),
        asynchronous: match (flags.set("async"), flags.set("sync")) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => streaming.then_some(true),
        },
        streaming,
        max_threads: max_threads.transpose()?,
        sequence_length: positive("sequence-length", 20)?,
        sequences: positive("num-of-sequences", 4)?,
        input: input_data(flags)?,
        shapes: flags.all("shape").into_iter().map(shape).collect::<Result<_, _>>()?,
        string_length: flags.number("string-length", 128)?,
        string_data: flags.text("string-data").map(str::to_owned),
        shared_memory: match flags.text("shared-memory").unwrap_or("none") {
            "none" => false,
            "system" => true,
            "cuda" => return Err("cuda shared memory is not supported".to_owned()),
            other => return Err(format!("--shared-memory: '{other}' is not none, system or cuda")),
        },
        output_shared_memory: positive("output-shared-memory-size", 100 * 1024)?,
        headers: flags.all("header").into_iter().map(header).collect::<Result<_, _>>()?,
        csv: flags.path("csv"),
        json: flags.path("json"),
        report: flags.path("report"),
        requirements: flags
            .all("require")
            .into_iter()
            .map(Requirement::parse)
            .collect::<Result<_, _>>()?,
        rounds: positive("rounds", 2)?,
        tolerance,
        timeout: Duration::try_from_secs_f64(timeout)
            .ok()
            .filter(|timeout| !timeout.is_zero())
            .ok_or("--timeout must be > 0")?,
        max_connections: positive("max-connections", 256)?,
        calls_per_connection: positive("calls-per-connection", 16)?,
        progress: match (flags.set("progress"), flags.set("no-progress")) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        seed: flags.number("seed", 1)?,
    })))
}

/// -1 and nothing: the server chooses.
fn version(flags: &Flags) -> Result<String, String> {
    match flags.number("version-of-model", -1_i64)? {
        negative if negative < 0 => Ok(String::new()),
        version => Ok(version.to_string()),
    }
}

fn servers(flags: &Flags, protocol: Protocol) -> Result<Vec<String>, String> {
    let given = flags.all("url");
    if given.is_empty() {
        let port = if protocol == Protocol::Http { 8000 } else { 8001 };
        return Ok(vec![format!("localhost:{port}")]);
    }
    let server = |url: &str| {
        if url.starts_with("https://") || url.starts_with("grpcs://") {
            return Err(format!(
                "-u {url}: load over TLS is not supported, use an address without"
            ));
        }
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("grpc://"));
        let rest = rest.unwrap_or(url).trim_end_matches('/');
        match rest.is_empty() || rest.contains('/') {
            true => Err(format!("-u {url}: expected HOST:PORT")),
            false => Ok(rest.to_owned()),
        }
    };
    given.into_iter().map(server).collect()
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let (name, value) = (name.trim(), value.trim());
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let printable = value.bytes().all(|byte| byte == b'\t' || (b' '..0x7f).contains(&byte));
    match !name.is_empty() && name.bytes().all(token) && printable {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err(format!("-H {text}: expected NAME:VALUE")),
    }
}

fn shape(text: &str) -> Result<(String, Vec<i64>), String> {
    let wrong = || format!("failed to parse input shape: {text}");
    let (name, dims) = text.rsplit_once(':').ok_or_else(wrong)?;
    let dims: Result<Vec<i64>, _> = dims.split(',').map(str::parse).collect();
    let dims = dims.map_err(|_| wrong())?;
    match dims.iter().any(|dim| *dim <= 0) {
        true => Err("input shape must be > 0".to_owned()),
        false => Ok((name.to_owned(), dims)),
    }
}

fn input_data(flags: &Flags) -> Result<InputData, String> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut zero = flags.set("zero");
    for text in flags.all("input-data") {
        let path = PathBuf::from(text);
        match text {
            _ if path.exists() => files.push(path),
            "zero" => zero = true,
            "random" => {}
            _ => return Err(format!("unsupported input data provided {text}")),
        }
    }
    files.extend(flags.all("data-directory").into_iter().map(PathBuf::from));
    match (zero, files.is_empty()) {
        (true, false) => Err("zero input can't be set when data directory is provided".to_owned()),
        (true, true) => Ok(InputData::Zero),
        (false, true) => Ok(InputData::Random),
        (false, false) => Ok(InputData::Files(files)),
    }
}

/// Up to three numbers; the third and what is left out are 1.
fn triple<N: std::str::FromStr + Copy>(
    text: &str,
    usual: N,
    (option, words): (&str, &str),
) -> Result<[N; 3], String> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(format!("option {option} can have maximum of three elements"));
    }
    let mut numbers = [usual; 3];
    for (number, part) in numbers.iter_mut().zip(parts) {
        *number = part.parse().map_err(|_| format!("failed to parse {words} range: {text}"))?;
    }
    Ok(numbers)
}

fn range(flags: &Flags, binary: bool, limit: u64) -> Result<Range, String> {
    let old = flags.set("dynamic")
        || flags.text("old-concurrency").is_some()
        || flags.text("old-limit").is_some();
    let concurrency = flags.text("concurrency-range");
    let rate = flags.text("request-rate-range");
    let intervals = flags.text("request-intervals");
    let refuse = |text: &str| Err(text.to_owned());
    if concurrency.is_some() && old {
        return refuse("can not use deprecated options with --concurrency-range");
    }
    if rate.is_some() && old {
        return refuse("can not use concurrency options with --request-rate-range");
    }
    if rate.is_some() && concurrency.is_some() {
        return refuse("can not specify concurrency_range and request_rate_range simultaneously");
    }
    if intervals.is_some() && old {
        return refuse("can not use deprecated options with --request-intervals");
    }
    if intervals.is_some() && (rate.is_some() || concurrency.is_some()) {
        return refuse(
            "can not use --concurrency-range or --request-rate-range along with --request-intervals",
        );
    }
    let distribution = match flags.text("request-distribution").unwrap_or("constant") {
        "constant" => Distribution::Constant,
        "poisson" => Distribution::Poisson,
        other => return Err(format!("unsupported request distribution provided {other}")),
    };
    let (range, [start, end, step]) = if let Some(file) = intervals {
        if binary {
            return refuse("--binary-search needs a range, not --request-intervals");
        }
        return Ok(Range::Intervals(read_intervals(file)?));
    } else if let Some(text) = rate {
        let [start, end, step] = triple(text, 1.0, ("request_rate_range", "request rate"))?;
        (Range::Rate { start, end, step, distribution }, [start, end, step])
    } else {
        let mut numbers = [1_usize; 3];
        if let Some(text) = concurrency {
            numbers = triple(text, 1, ("concurrency-range", "concurrency"))?;
        } else if old {
            numbers[0] = flags.number("old-concurrency", 1)?;
            if flags.set("dynamic") {
                numbers[1] = flags.number("old-limit", 0)?;
            }
        }
        let [start, end, step] = numbers;
        (Range::Concurrency { start, end, step }, numbers.map(|number| number as f64))
    };
    if !(start > 0.0 && start.is_finite()) {
        return refuse("The start of the search range must be > 0");
    }
    if !(step > 0.0 && end >= 0.0) {
        return refuse("The step of the search range must be > 0, its end not negative");
    }
    if end == 0.0 && limit == 0 {
        return refuse(
            "The end of the search range and the latency limit can not be both 0 (or 0.0) simultaneously",
        );
    }
    if binary && end == 0.0 {
        return refuse("The end of the range can not be 0 (or 0.0) for binary search mode.");
    }
    if binary && limit == 0 {
        return refuse("The latency threshold can not be 0 for binary search mode.");
    }
    if binary && end < start {
        return refuse(
            "The end of the range can not be less than start of the range for binary search mode.",
        );
    }
    Ok(range)
}

fn read_intervals(file: &str) -> Result<Vec<u64>, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("--request-intervals {file}: {e}"))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let number = |(index, line): (usize, &str)| {
        line.trim().parse().map_err(|_| {
            format!("--request-intervals {file}: line {}: '{line}' is no number", index + 1)
        })
    };
    let gaps: Vec<u64> = lines.map(number).collect::<Result<_, _>>()?;
    match gaps.iter().any(|gap| *gap > 0) {
        true => Ok(gaps),
        false => Err(format!("--request-intervals {file}: no interval above 0")),
    }
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
