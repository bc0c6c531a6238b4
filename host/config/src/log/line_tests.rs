//! Unit tests of `line.rs`.

use super::*;
use std::time::Duration;

fn record(message: &str) -> LogLine {
    LogLine {
        now: UNIX_EPOCH + Duration::new(1_550_250_245, 12_345_678),
        pid: 42,
        level: Level::INFO,
        target: "trtserver::server".into(),
        file: "server.rs".into(),
        line: 500,
        message: message.into(),
        fields: Vec::new(),
    }
}

#[test]
fn three_formats() {
    let mut r = record("Model \"a\" is ready");
    let table = [
        (
            LogFormat::Default,
            "I0215 17:04:05.012345 42 server.rs:500] \"Model \\\"a\\\" is ready\"\n",
        ),
        (
            LogFormat::Iso8601,
            "2019-02-15T17:04:05Z I 42 server.rs:500] \"Model \\\"a\\\" is ready\"\n",
        ),
        (
            LogFormat::Json,
            "{\"time\":\"2019-02-15T17:04:05.012345Z\",\"level\":\"INFO\",\"pid\":42,\
             \"file\":\"server.rs\",\"line\":500,\"target\":\"trtserver::server\",\
             \"message\":\"Model \\\"a\\\" is ready\"}\n",
        ),
    ];
    for (format, want) in table {
        assert_eq!(r.line(format, true), want);
    }
    r.level = Level::WARN;
    assert!(r.line(LogFormat::Default, true).starts_with('W'));
    r.level = Level::ERROR;
    assert!(r.line(LogFormat::Default, true).starts_with('E'));
    r.level = Level::TRACE;
    assert!(r.line(LogFormat::Default, true).starts_with('I'));
}

#[test]
fn fields_follow_the_message() {
    let mut r = record("loaded");
    r.fields.push(("model".into(), "a".into()));
    r.fields.push(("version".into(), 3.into()));
    r.fields.push(("why".into(), "two words".into()));
    let line = r.line(LogFormat::Default, true);
    assert!(line.ends_with("] \"loaded model=a version=3 why=\\\"two words\\\"\"\n"), "{line}");
    let line = r.line(LogFormat::Json, true);
    assert!(line.contains("\"fields\":{\"model\":\"a\",\"version\":3,\"why\":\"two words\"}"));
}

#[test]
fn message_cannot_forge_a_line() {
    let r = record("bad\nE0215 00:00:00.000000 1 x.rs:1] forged\r\u{1b}[2J\u{85}\u{2028}\u{202e}");
    let head = "I0215 17:04:05.012345 42 server.rs:500] ";
    let want =
        "\"bad\\nE0215 00:00:00.000000 1 x.rs:1] forged\\r\\u001b[2J\\u0085\\u2028\\u202e\"\n";
    assert_eq!(r.line(LogFormat::Default, true), format!("{head}{want}"));
    for format in [LogFormat::Default, LogFormat::Iso8601, LogFormat::Json] {
        let line = r.line(format, true);
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.ends_with('\n') && !line.contains(['\r', '\u{1b}']), "{line}");
    }
    let json: Value = serde_json::from_str(&r.line(LogFormat::Json, true)).unwrap();
    assert_eq!(json["message"], r.message.as_str());
    assert!(r.line(LogFormat::Default, false).contains("bad\nE0215"));
}

#[test]
fn source_file_of_a_backend_cannot_forge_a_record() {
    let long = "f".repeat(MAX_FILE + 1);
    for (file, expected) in [
        ("host/src/server.rs", "server.rs"),
        ("C:\\src\\model.cc", "model.cc"),
        ("<string>", "_string_"),
        (
            "x.rs:1] \"loaded\"\nE0215 00:00:00.000000 1 y.rs",
            "x.rs_1___loaded__E0215_00_00_00.000000_1_y.rs",
        ),
        ("a\u{2028}\u{202e}b\u{1b}[2J", "a__b__2J"),
        (&long, &long[1..]),
    ] {
        assert_eq!(place_text(file), expected);
    }
}

#[test]
fn long_texts_are_cut_in_the_middle() {
    let name = format!("ü{}", "n".repeat(1 << 20));
    let cut = cut_text(format!("model '{name}': reason"), MAX_MESSAGE);
    assert!(cut.len() < MAX_MESSAGE + 100, "{}", cut.len());
    assert!(cut.starts_with("model 'ünn") && cut.ends_with("nn': reason"), "{cut}");
    assert!(cut.contains("bytes left out"), "{cut}");
    let umlauts = cut_text("ü".repeat(100), 50);
    assert!(umlauts.starts_with('ü') && umlauts.ends_with('ü'), "{umlauts}");
    let short = "s".repeat(MAX_FIELD);
    assert_eq!(cut_text(short.clone(), MAX_FIELD), short);
    let mut r = record("short");
    r.fields.extend((0..10).map(|n| (n.to_string(), Value::from(short.clone()))));
    assert!(r.line(LogFormat::Default, true).len() < MAX_MESSAGE + 200);
}

#[test]
fn timestamps_convert_to_calendar_dates() {
    let table = [
        (0, (1970, 1, 1)),
        (951_782_400, (2000, 2, 29)),
        (951_868_800, (2000, 3, 1)),
        (1_709_164_800, (2024, 2, 29)),
        (1_735_689_599, (2024, 12, 31)),
        (1_735_689_600, (2025, 1, 1)),
        (4_107_542_400, (2100, 3, 1)),
    ];
    for (seconds, want) in table {
        let t = UtcTime::from(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!((t.year, t.month, t.day), want, "{seconds}");
    }
}
