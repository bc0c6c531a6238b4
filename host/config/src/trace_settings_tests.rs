//! Unit tests of `trace_settings.rs`.

use super::*;
use crate::testing::{error_of, run};

fn config_of(flags: &str) -> TraceConfig {
    match run(&format!("--model-store=/m {flags}")) {
        Ok(start) => start.settings.trace,
        Err(exit) => panic!("{flags}: {}", exit.stderr),
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn flags_become_settings() {
    let timestamps = TraceLevels { timestamps: true, tensors: false };
    let values = TraceValues { levels: timestamps, ..TraceValues::default() };
    let config = TraceConfig::default();
    for (flags, expected) in [
        ("", config.clone()),
        ("--trace-config=level=TIMESTAMPS", TraceConfig { values, ..config.clone() }),
        ("--trace-level=min", TraceConfig { values, ..config.clone() }),
        (
            "--trace-config=level=TIMESTAMPS --trace-config=level=TENSORS --trace-config=rate=3 \
             --trace-config=count=-1 --trace-config=triton,file=t.json \
             --trace-config=triton,log-frequency=9",
            TraceConfig {
                values: TraceValues {
                    levels: TraceLevels { timestamps: true, tensors: true },
                    rate: 3,
                    count: -1,
                    log_frequency: 9,
                },
                file: text("t.json"),
                rate_given: true,
                ..config.clone()
            },
        ),
        // The newer flag counts.
        (
            "--trace-config=rate=3 --trace-rate=4 --trace-count=5 --trace-file=t",
            TraceConfig {
                values: TraceValues { rate: 3, count: 5, ..TraceValues::default() },
                file: text("t"),
                rate_given: true,
                ..config.clone()
            },
        ),
        (
            "--trace-config=mode=opentelemetry --trace-config=opentelemetry,url=http://h:1/a,b=c \
             --trace-config=opentelemetry,resource=service.name=x --trace-config=opentelemetry,parent=always",
            TraceConfig {
                mode: TraceMode::OpenTelemetry,
                options: vec![
                    (text("url"), text("http://h:1/a,b=c")),
                    (text("resource"), text("service.name=x")),
                ],
                parent_based: false,
                ..config.clone()
            },
        ),
        (
            "--trace-kept=3 --trace-slow-ms=0",
            TraceConfig { recent: Some(3), slow: Some(Duration::ZERO), ..config.clone() },
        ),
    ] {
        assert_eq!(config_of(flags), expected, "{flags}");
    }
}

#[test]
fn invalid_settings_are_refused() {
    for (flags, expected) in [
        ("--trace-config=rate", "--trace-config=rate: expected [MODE,]KEY=VALUE"),
        (
            "--trace-config=rate=x",
            "--trace-config=rate=x: expected a whole number from 0 to 4294967295, got x",
        ),
        (
            "--trace-config=count=-2",
            "--trace-config=count=-2: expected a whole number, at least -1, got -2",
        ),
        (
            "--trace-config=mode=zipkin",
            "--trace-config=mode=zipkin: the mode is triton or opentelemetry",
        ),
        (
            "--trace-config=triton,level=OFF",
            "--trace-config=triton,level=OFF: triton has the settings file and log-frequency",
        ),
        (
            "--trace-config=level=ALL",
            "the trace level ALL is unknown: the levels are OFF, TIMESTAMPS and TENSORS",
        ),
        ("--trace-rate=-1", "--trace-rate: expected a whole number from 0 to 4294967295, got -1"),
    ] {
        assert_eq!(error_of(&format!("--model-store=/m {flags}")), expected, "{flags}");
    }
}
