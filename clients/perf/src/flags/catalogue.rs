//! Every flag with its help.

use crate::settings::Program;
use clap::{Arg, ArgAction, Command, value_parser};
use std::path::PathBuf;

const MEASUREMENT: &str = "Measurement";
const INPUT: &str = "Input data";
const SERVER: &str = "Server";
const TLS: &str = "TLS";
const OUTPUT: &str = "Output and verdicts";

fn option_flag(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn switch_flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn short_flag(letter: char, value: &'static str, help: &'static str) -> Arg {
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

fn letter_flag(name: &'static str, letter: char, help: &'static str) -> Arg {
    Arg::new(name).short(letter).action(ArgAction::SetTrue).help(help)
}

fn measurement_flags() -> Vec<Arg> {
    vec![
        option_flag(
            "concurrency-range",
            "START:END:STEP",
            "Requests in flight; END 0 goes on until the latency limit (1:1:1)",
        ),
        option_flag(
            "request-rate-range",
            "START:END:STEP",
            "Requests per second; each is sent when it is due, and latency counts from then",
        ),
        option_flag(
            "request-distribution",
            "NAME",
            "Gaps between requests at a rate: `constant` or `poisson` (constant)",
        ),
        option_flag(
            "request-intervals",
            "FILE",
            "Gaps between requests in microseconds, one a line, repeated",
        ),
        switch_flag(
            "binary-search",
            "Find the highest load within the latency limit; STEP is the precision",
        ),
        option_flag(
            "latency-threshold",
            "MS",
            "Stop when the latency reaches this limit (0: none)",
        )
        .short('l'),
        option_flag("measurement-interval", "MS", "Length of a measurement window (5000)")
            .short('p'),
        option_flag("max-trials", "N", "Windows until a result must be stable (10)").short('r'),
        option_flag(
            "stability-percentage",
            "PERCENT",
            "A result is stable when three windows differ from their mean by no more (10)",
        )
        .short('s'),
        option_flag(
            "percentile",
            "P",
            "Judge this percentile instead of the average latency (-1: average)",
        )
        .allow_hyphen_values(true),
        option_flag(
            "rounds",
            "N",
            "Rounds over several servers or models, in the order A B B A (2)",
        ),
        option_flag(
            "max-threads",
            "N",
            "Load threads at most; never more than half of the cores, nor than 8 (one is enough for most servers)",
        ),
        option_flag("num-of-sequences", "N", "Sequences at a time with a request rate (4)"),
        option_flag("sequence-length", "N", "Requests of a sequence, a fifth more or less (20)"),
        option_flag(
            "max-connections",
            "N",
            "Connections of a load thread with a request rate (256)",
        ),
        option_flag("calls-per-connection", "N", "gRPC calls that share a connection (16)"),
        option_flag(
            "timeout",
            "SECONDS",
            "A request without a response for this long has failed (30)",
        ),
        option_flag("seed", "N", "Seed of the Poisson schedule (1)"),
        switch_flag("async", "Accepted: requests are always sent asynchronously").short('a'),
        switch_flag("sync", "Accepted: see --async"),
        letter_flag("dynamic", 'd', "Deprecated: raise the concurrency from -t to -c"),
        short_flag('t', "N", "Deprecated: requests in flight (1)"),
        short_flag('c', "N", "Deprecated: limit of -d (0: none)"),
        letter_flag(
            "profile",
            'n',
            "Run the server's profiler during the windows (v1; server flag --allow-profiling)",
        ),
    ]
}

fn input_flags() -> Vec<Arg> {
    vec![
        short_flag('b', "N", "Batch size of a request (1)"),
        option_flag(
            "input-data",
            "WHAT",
            "`zero`, `random`, a folder with a file for each input, or a JSON file (random)",
        )
        .action(ArgAction::Append),
        option_flag("shape", "NAME:D,D,...", "Shape of an input without the batch (repeatable)")
            .action(ArgAction::Append),
        option_flag("string-length", "N", "Length of random strings (128)"),
        option_flag("string-data", "TEXT", "Text of all string elements"),
        option_flag(
            "shared-memory",
            "KIND",
            "Where tensors are: `none`, `system` or `cuda` (none)",
        ),
        option_flag(
            "output-shared-memory-size",
            "BYTES",
            "Shared memory of an output of variable size (102400)",
        ),
        letter_flag("zero", 'z', "Deprecated: --input-data zero"),
        option_flag("data-directory", "DIR", "Deprecated: --input-data DIR")
            .action(ArgAction::Append),
    ]
}

fn server_flags() -> Vec<Arg> {
    vec![
        short_flag('m', "NAME", "Model (repeatable: each is measured)").action(ArgAction::Append),
        short_flag('x', "VERSION", "Version of the model (the latest)").allow_hyphen_values(true),
        short_flag(
            'u',
            "HOST:PORT",
            "Server (localhost:8000; gRPC localhost:8001), with TLS https:// or grpcs:// before it; repeatable: each is measured",
        )
        .action(ArgAction::Append),
        short_flag('i', "PROTOCOL", "HTTP or gRPC (HTTP)"),
        option_flag(
            "generation",
            "NAME",
            "Generation of the protocol: v1 or v2 (trtserver-perf: v2, perf_client: v1)",
        ),
        switch_flag("streaming", "Send requests on gRPC streams"),
        short_flag('H', "NAME:VALUE", "Header of each request (repeatable)").action(ArgAction::Append),
        option_flag("token-file", "FILE", "Token of each request (Authorization: Bearer), from a file"),
    ]
}

fn output_flags() -> Vec<Arg> {
    let file = |arg: Arg| arg.value_parser(value_parser!(PathBuf));
    vec![
        Arg::new("verbose").short('v').action(ArgAction::Count).help("Print each measurement window"),
        file(short_flag('f', "FILE", "Write the results as CSV")),
        file(option_flag("json", "FILE", "Write the results as JSON, for --compare")),
        file(option_flag("report", "FILE", "Write a page with tables and plots (one HTML file)")),
        option_flag("require", "CONDITION", "Exit with code 3 unless it holds at every load: such as `p99<=5ms`, `throughput>=1000`, or `stable` (repeatable)").action(ArgAction::Append),
        file(option_flag("compare", "BEFORE AFTER", "Judge two files of --json; exit with code 4 if the second is worse").num_args(2)),
        option_flag("tolerance", "PERCENT", "With --compare: differences up to this do not count (2)"),
        switch_flag("progress", "Show a progress line (the default on a terminal)"),
        switch_flag("no-progress", "Show no progress line").conflicts_with("progress"),
    ]
}

pub fn build_command(program: Program) -> Command {
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
    for (heading, args) in [
        (MEASUREMENT, measurement_flags()),
        (INPUT, input_flags()),
        (SERVER, server_flags()),
        (TLS, super::tls::tls_arguments()),
        (OUTPUT, output_flags()),
    ] {
        command = command.args(args.into_iter().map(|arg| arg.help_heading(heading)));
    }
    command
}
