//! Unit tests of `flags.rs`.

use super::{Stop, build_command, parse_flags};
use crate::engine::Distribution;
use crate::settings::{Action, Generation, InputData, Program, Protocol, Range, Server, Settings};
use std::ffi::OsString;

fn run(program: Program, flags: &str) -> Result<Action, String> {
    let name = if program == Program::PerfClient { "perf_client" } else { "trtserver-perf" };
    let args = std::iter::once(name).chain(flags.split_whitespace()).map(OsString::from);
    parse_flags(program, args).map_err(|stop| match stop {
        Stop::Shown(text) => format!("shown: {text}"),
        Stop::Wrong(text) => text,
    })
}

fn settings(flags: &str) -> Settings {
    match run(Program::TrtserverPerf, &format!("-m m {flags}")) {
        Ok(Action::Measure(settings)) => *settings,
        other => panic!("{flags}: {other:?}"),
    }
}

fn server(authority: &str, tls: bool) -> Server {
    Server { authority: authority.to_owned(), tls }
}

#[test]
fn the_definition_of_the_flags_is_consistent() {
    build_command(Program::PerfClient).debug_assert();
    build_command(Program::TrtserverPerf).debug_assert();
}

#[test]
fn the_name_selects_the_generation() {
    let generation = |program, flags: &str| match run(program, &format!("-m m {flags}")) {
        Ok(Action::Measure(settings)) => settings.generation,
        other => panic!("{other:?}"),
    };
    assert_eq!(generation(Program::PerfClient, ""), Generation::V1);
    assert_eq!(generation(Program::PerfClient, "--generation v2"), Generation::V2);
    assert_eq!(generation(Program::TrtserverPerf, ""), Generation::V2);
}

#[test]
fn defaults_are_those_of_perf_client() {
    let usual = settings("");
    assert_eq!(usual.range, Range::Concurrency { start: 1, end: 1, step: 1 });
    assert_eq!((usual.batch, usual.window.as_millis(), usual.max_trials), (1, 5000, 10));
    assert_eq!((usual.stability, usual.percentile, usual.latency_limit_ms), (0.1, None, 0));
    assert_eq!((usual.sequence_length, usual.sequences, usual.string_length), (20, 4, 128));
    assert_eq!(
        (usual.servers, usual.protocol),
        (vec![server("localhost:8000", false)], Protocol::Http)
    );
    assert_eq!((usual.input, usual.output_shared_memory), (InputData::Random, 102_400));
    assert_eq!(settings("-i GRPC").servers, [server("localhost:8001", false)]);
}

#[test]
fn old_and_new_spellings_mean_the_same() {
    let concurrency = |start, end, step| Range::Concurrency { start, end, step };
    let constant = Distribution::Constant;
    let cases = [
        ("-t 4", concurrency(4, 1, 1)),
        ("-d -t 2 -c 9", concurrency(2, 9, 1)),
        ("-d -l 5", concurrency(1, 0, 1)),
        ("--concurrency-range 4", concurrency(4, 1, 1)),
        ("--concurrency-range=1:8:2", concurrency(1, 8, 2)),
        (
            "--request-rate-range 10.5:20",
            Range::Rate { start: 10.5, end: 20.0, step: 1.0, distribution: constant },
        ),
    ];
    for (flags, range) in cases {
        assert_eq!(settings(flags).range, range, "{flags}");
    }
    let short =
        settings("-p 100 -r 5 -s 20.5 -l 7 -z -b8 -x 3 -H A:b -H X-Y:1:2 -u http://h:1/ -u h:2");
    assert_eq!((short.window.as_millis(), short.max_trials, short.latency_limit_ms), (100, 5, 7));
    assert_eq!((short.stability, short.input, short.batch), (0.205, InputData::Zero, 8));
    assert_eq!(
        (short.version.as_str(), short.servers),
        ("3", vec![server("h:1", false), server("h:2", false)])
    );
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(short.headers, [header("A", "b"), header("X-Y", "1:2")]);
    assert_eq!(settings("-x -1").version, "");
    assert_eq!(settings("--percentile -1").percentile, None);
    assert_eq!(settings("--shape in:1,2,3 --shape a:b:4").shapes["a:b"], [4]);
}

#[test]
fn wrong_flags_have_the_texts_of_perf_client() {
    let cases = [
        ("", "-m flag must be specified"),
        ("-m m -b 0", "batch size must be > 0"),
        ("-m m -p 0", "measurement window must be > 0 in msec"),
        ("-m m -t 0", "The start of the search range must be > 0"),
        ("-m m --request-rate-range 0", "The start of the search range must be > 0"),
        ("-m m -i udp", "protocol should be either HTTP or gRPC"),
        ("-m m --streaming", "streaming is only allowed with gRPC protocol"),
        ("-m m --max-threads 0", "maximum number of threads must be > 0"),
        ("-m m --percentile 100", "percentile must be -1 for not reporting or in range (0, 100)"),
        ("-m m -z --input-data .", "zero input can't be set when data directory is provided"),
        ("-m m --async --sync", "Both --async and --sync can not be specified simultaneously."),
        (
            "-m m --concurrency-range 1 -t 2",
            "can not use deprecated options with --concurrency-range",
        ),
        (
            "-m m --request-rate-range 1 -t 2",
            "can not use concurrency options with --request-rate-range",
        ),
        (
            "-m m --request-rate-range 1 --concurrency-range 2",
            "can not specify concurrency_range and request_rate_range simultaneously",
        ),
        (
            "-m m --request-intervals f -t 2",
            "can not use deprecated options with --request-intervals",
        ),
        (
            "-m m --concurrency-range 1:0",
            "The end of the search range and the latency limit can not be both 0 (or 0.0) simultaneously",
        ),
        (
            "-m m --concurrency-range 1:0 -l 5 --binary-search",
            "The end of the range can not be 0 (or 0.0) for binary search mode.",
        ),
        (
            "-m m --concurrency-range 1:8 --binary-search",
            "The latency threshold can not be 0 for binary search mode.",
        ),
        (
            "-m m --concurrency-range 8:2 -l 5 --binary-search",
            "The end of the range can not be less than start of the range for binary search mode.",
        ),
        (
            "-m m --concurrency-range 1:2:3:4",
            "option concurrency-range can have maximum of three elements",
        ),
        ("-m m --concurrency-range x", "failed to parse concurrency range: x"),
        ("-m m --shape in", "failed to parse input shape: in"),
        ("-m m --shape in:0", "input shape must be > 0"),
        ("-m m --request-distribution bell", "unsupported request distribution provided bell"),
        ("-m m --input-data nowhere", "unsupported input data provided nowhere"),
        ("-m m -u ftp://h", "-u ftp://h: 'ftp' is not a scheme of a server"),
        ("-m m -u grpc://h", "-u grpc://h: the protocol is HTTP; -i grpc selects gRPC"),
        ("-m m -H a b", "unexpected argument 'b' found"),
        ("-m m -H ä:b", "-H ä:b: expected NAME:VALUE"),
        (
            "-m m --shared-memory cuda",
            "--shared-memory cuda is not supported: trtserver-perf allocates no GPU memory; system keeps the tensors in host memory",
        ),
        (
            "-m m -n --generation v2",
            "-n: v2 has no calls for the profiler; --generation v1 has them",
        ),
        ("-m m --timeout 0", "--timeout must be > 0"),
        ("-m m --nothing", "unexpected argument '--nothing' found"),
    ];
    for (flags, text) in cases {
        assert_eq!(run(Program::PerfClient, flags).unwrap_err(), text, "{flags}");
    }
    assert!(run(Program::PerfClient, "--help").unwrap_err().starts_with("shown: Measures"));
}

#[test]
fn tls_is_chosen_by_scheme_or_flag() {
    let with = settings("-u https://h:1 -u h:2 --tls-insecure");
    assert_eq!(with.servers, [server("h:1", true), server("h:2", false)]);
    assert!(with.tls.insecure);
    assert_eq!(settings("-i grpc -u grpcs://h:1").servers, [server("h:1", true)]);
    let with = settings("-i grpc --ssl-grpc-use-ssl --tls-server-name n");
    assert_eq!(with.servers, [server("localhost:8001", true)]);
    assert_eq!(with.tls.server_name.as_deref(), Some("n"));
    let peer = "--ssl-https-verify-peer 0 --ssl-https-verify-host 0";
    assert!(settings(&format!("-u https://h:1 {peer}")).tls.insecure);
}

#[test]
fn tokens_come_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let flags = format!("-m m -H a:b --token-file {}", path.display());
    let refused = || run(Program::TrtserverPerf, &flags).unwrap_err();
    assert!(refused().contains("No such file"));
    for wrong in ["", "\n", "two words"] {
        std::fs::write(&path, wrong).unwrap();
        assert!(refused().contains("expected one token without spaces"), "{wrong:?}");
    }
    std::fs::write(&path, "s3cret\n").unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = settings(&flags.replace("-m m ", "")).headers;
    assert_eq!(headers, [pair("a", "b"), pair("authorization", "Bearer s3cret")]);
}

#[test]
fn wrong_flags_of_tls_are_refused() {
    let cases = [
        ("-u h:1 --tls-insecure", "--tls-insecure: no server is asked over TLS"),
        ("--ssl-grpc-use-ssl", "--ssl-grpc-use-ssl: no server is asked over TLS"),
        (
            "-u https://h:1 --ssl-https-ca-certificates-file /no/such",
            "--tls-ca-file /no/such: No such file",
        ),
        (
            "-u https://h:1 --tls-key-file /dev/null",
            "--tls-certificate-file and --tls-key-file belong",
        ),
        ("-u https://h:1 --ssl-https-verify-peer 0", "must both be 0, or neither"),
        ("-u https://h:1 --ssl-https-verify-peer 2", "'2' is not one of 0, 1"),
        ("-u https://h:1 --ssl-https-private-key-type DER", "only PEM files are read"),
    ];
    for (flags, text) in cases {
        let error = run(Program::TrtserverPerf, &format!("-m m {flags}")).unwrap_err();
        assert!(error.contains(text), "{flags}: {error}, expected {text}");
    }
}

#[test]
fn intervals_are_read_from_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gaps");
    let with = |text: &str| {
        std::fs::write(&file, text).unwrap();
        run(Program::TrtserverPerf, &format!("-m m --request-intervals {}", file.display()))
    };
    match with("100\n\n250 \n") {
        Ok(Action::Measure(settings)) => {
            assert_eq!(settings.range, Range::Intervals(vec![100, 250]))
        }
        other => panic!("{other:?}"),
    }
    assert!(with("100\nx\n").unwrap_err().ends_with("line 2: 'x' is not a number"));
    assert!(with("0\n").unwrap_err().ends_with("no interval above 0"));
    std::fs::remove_file(&file).unwrap();
    let gone = format!("-m m --request-intervals {}", file.display());
    assert!(run(Program::TrtserverPerf, &gone).unwrap_err().contains("No such file"));
}

#[test]
fn two_files_are_compared() {
    match run(Program::TrtserverPerf, "--compare a.json b.json --tolerance 5") {
        Ok(Action::Compare(comparison)) => {
            assert_eq!(
                (comparison.before.to_str(), comparison.after.to_str()),
                (Some("a.json"), Some("b.json"))
            );
            assert_eq!(comparison.tolerance, 0.05);
        }
        other => panic!("{other:?}"),
    }
}
