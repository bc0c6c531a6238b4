//! Unit tests of `context.rs`.

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn read(parent: &str, states: &[&str]) -> Option<TraceContext> {
    TraceContext::from_headers([parent.as_bytes()], states.iter().map(|state| state.as_bytes()))
}

#[test]
fn traceparents() {
    let good = format!("00-{TRACE}-{SPAN}");
    // Value, and whether the caller records its span; `None`: not valid.
    let table = [
        (format!("{good}-01"), Some(true)),
        (format!("{good}-00"), Some(false)),
        (format!(" {good}-01 "), Some(true)),
        // Other bits of the flags mean nothing here.
        (format!("{good}-ff"), Some(true)),
        (format!("{good}-02"), Some(false)),
        // A later version, alone and with a field more.
        (format!("01-{TRACE}-{SPAN}-01"), Some(true)),
        (format!("cc-{TRACE}-{SPAN}-01-what-the-future-holds"), Some(true)),
        (format!("cc-{TRACE}-{SPAN}-01.more"), None),
        (format!("{good}-01-more"), None),
        (format!("ff-{TRACE}-{SPAN}-01"), None),
        (format!("0-{TRACE}-{SPAN}-01"), None),
        (format!("{good}-0"), None),
        (format!("{good}-0x"), None),
        (good.clone(), None),
        (format!("{good}_01"), None),
        (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), None),
        (format!("00-{TRACE}-{}-01", SPAN.to_uppercase()), None),
        (format!("00-{}-{SPAN}-01", "0".repeat(32)), None),
        (format!("00-{TRACE}-{}-01", "0".repeat(16)), None),
        (format!("00-{TRACE}{SPAN}--01"), None),
        (format!("00-{TRACE}-{SPAN}-0é"), None),
        ("é".repeat(40), None),
        (String::new(), None),
        ("-".repeat(55), None),
        ("0".repeat(1 << 20), None),
    ];
    for (value, sampled) in table {
        let found = read(&value, &[]);
        let shown = &value[..value.len().min(80)];
        assert_eq!(found.as_ref().map(|context| context.sampled), sampled, "{shown}");
        if let Some(context) = found {
            assert_eq!(context.trace_id.to_string(), TRACE);
            assert_eq!(context.span_id.to_string(), SPAN);
        }
    }
    let twice = [good.as_bytes(), good.as_bytes()];
    assert_eq!(TraceContext::from_headers(twice, []), None);
    assert_eq!(TraceContext::from_headers([], []), None);
}

#[test]
fn tracestates() {
    let many = |count: usize| (0..count).map(|i| format!("k{i}=v")).collect::<Vec<_>>().join(",");
    let long = format!("l={}", "x".repeat(200));
    let fill = |key: &str, length: usize| format!("{key}={}", "x".repeat(length - key.len() - 1));
    // 127 bytes each, and 131 with the comma before the last one: too long by one entry.
    let short = ["a", "b", "c", "d", "e"].map(|key| fill(key, 127)).join(",");
    let table: [(&[&str], &str); 20] = [
        (&[], ""),
        (&["a=1"], "a=1"),
        (&["a=1", "b=2,c=3"], "a=1,b=2,c=3"),
        (&[" a=1 ,\tb=2 ,,"], "a=1,b=2"),
        (&["tenant@vendor=x y!"], "tenant@vendor=x y!"),
        (&["0tenant@v=1"], "0tenant@v=1"),
        (&["a=1,a=2"], ""),
        (&["a=1", "a=2"], ""),
        (&["a"], ""),
        (&["a="], ""),
        (&["=1"], ""),
        (&["A=1"], ""),
        (&["a=b=c"], ""),
        (&["a@0v=1"], ""),
        (&["a=\u{e9}"], ""),
        (&["a=\u{7}"], ""),
        (&[&many(32)], &many(32)),
        (&[&many(33)], ""),
        // Long entries go first, then the last ones.
        (
            &[
                &format!("a=1,{long},{},b=2", long.replace('l', "m")),
                &format!("c={}", "y".repeat(180)),
            ],
            &format!("a=1,{long},{},b=2", long.replace('l', "m")),
        ),
        (&[&short], &["a", "b", "c", "d"].map(|key| fill(key, 127)).join(",")),
    ];
    let parent = format!("00-{TRACE}-{SPAN}-01");
    for (values, state) in table {
        let found = read(&parent, values).map(|context| context.state);
        assert_eq!(found.as_deref(), Some(state), "{values:?}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    for sampled in [true, false] {
        let context = TraceContext {
            trace_id: TraceId::random(),
            span_id: SpanId::random(),
            sampled,
            state: "vendor=1".to_owned(),
        };
        assert_eq!(read(&context.traceparent(), &["vendor=1"]), Some(context.clone()));
        let json: serde_json::Value = serde_json::from_str(&context.to_json()).unwrap();
        assert_eq!(json["traceparent"], context.traceparent());
        assert_eq!(json["tracestate"], "vendor=1");
    }
}

#[test]
fn ids_differ_between_threads_and_calls() {
    let ids = |_| std::thread::spawn(|| (0..1000).map(|_| SpanId::random()).collect::<Vec<_>>());
    let threads: Vec<_> = (0..4).map(ids).collect();
    let all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let different: std::collections::HashSet<_> = all.iter().collect();
    assert_eq!(different.len(), 4000);
}
