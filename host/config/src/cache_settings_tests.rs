//! Unit tests of `cache_settings.rs`: start lines with a response cache.

use crate::testing::{error_of, run};
use std::time::Duration;

fn cache(line: &str) -> Option<(u64, Option<Duration>)> {
    let start = run(&format!("--model-repository=/m {line}")).expect(line);
    start.settings.response_cache.map(|cache| (cache.size, cache.ttl))
}

#[test]
fn caches_of_start_lines() {
    let ttl = |ms| Some(Duration::from_millis(ms));
    for (line, want) in [
        ("", None),
        ("--response-cache-byte-size=0", None),
        ("--response-cache-byte-size=8192", Some((8192, None))),
        ("--cache-config=local,size=8192", Some((8192, None))),
        ("--cache-config local,size=1G", Some((1 << 30, None))),
        ("--cache-config=local,size=1K,ttl=1.5", Some((1024, ttl(1500)))),
        ("--cache-config=local,ttl=60 --cache-config=local,size=7", Some((7, ttl(60_000)))),
        ("--cache-config=local,size=1 --cache-config=local,size=2", Some((2, None))),
        ("--cache-directory=/x", None),
    ] {
        assert_eq!(cache(line), want, "{line}");
    }
}

#[test]
fn invalid_caches_are_refused() {
    let format = "--cache-config option format is '<cache name>,<setting>=<value>'. Got ";
    let size = "Failed to initialize LocalCache: config didn't contain a valid 'size' field.";
    for (line, want) in [
        ("--cache-config=local", format!("{format}local")),
        ("--cache-config=local,size", format!("{format}local,size")),
        ("--cache-config=local,ttl=1", size.to_owned()),
        (
            "--cache-config=local,size=0",
            format!("{size} --cache-config=local,size=0: expected a number of bytes, at least 1"),
        ),
        (
            "--cache-config=local,size=9,ttl=0",
            "--cache-config=local,ttl=0: expected seconds, more than 0".to_owned(),
        ),
        (
            "--cache-config=local,size=9,ttl=-1",
            "--cache-config=local,ttl=-1: expected seconds, more than 0".to_owned(),
        ),
        (
            "--cache-config=local,sizes=9",
            "--cache-config=local,sizes=9: expected one of the keys size, ttl".to_owned(),
        ),
        (
            "--cache-config=redis,host=h",
            "--cache-config=redis,host=h: this server does not have the cache 'redis', only 'local'"
                .to_owned(),
        ),
        (
            "--cache-config=local,size=8192 --cache-config=redis,key=value",
            "found multiple cache configurations, but only a single cache is currently supported"
                .to_owned(),
        ),
        (
            "--response-cache-byte-size=12345 --cache-config=local,size=67890",
            "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. \
             Please provide one or the other."
                .to_owned(),
        ),
    ] {
        assert_eq!(error_of(&format!("--model-repository=/m {line}")), want, "{line}");
    }
}

#[test]
fn older_flag_is_deprecated() {
    let notes = |line: &str| run(&format!("--model-repository=/m {line}")).expect(line).notes;
    let text = "--response-cache-byte-size=9: deprecated, use --cache-config=local,size=9";
    assert_eq!(notes("--response-cache-byte-size=9"), [crate::StartNote::Warning(text.to_owned())]);
    assert_eq!(notes("--response-cache-byte-size=0"), []);
}
