//! Invalid scheduling in configurations and requests: each is refused, other models and requests
//! are not affected.

use std::fmt::Write as _;
use trtserver_tests::http1::request;
use trtserver_tests::scheduled::{NEVER, accumulator, batcher, correlation, flag, sequences};
use trtserver_tests::{Response, Running, Server};

/// Invalid configurations: name, scheduling, part of the message.
fn bad() -> Vec<(&'static str, String, &'static str)> {
    let dynamic = |text: &str| format!("dynamic_batching {{ {text} }}\n");
    let direct = |controls: &[String]| sequences("0", "direct { }", controls);
    let strategy = |text: &str| sequences("0", text, &[flag("START", "int32")]);
    let control = |rest: &str| {
        direct(&[format!("control_input [ {{ name: \"START\" control [ {{ {rest} }} ] }} ]\n")])
    };
    let state = |rest: &str| {
        let state = "input_name: \"IN\" output_name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ]";
        direct(&[format!("state [ {{ {state} {rest} }} ]\n")])
    };
    let initial = |rest: &str| state(&format!("initial_state: {{ {rest} }}"));
    let ends = [flag("END", "int32"), flag("END", "fp32").replace("\"END\"", "\"LAST\"")];
    vec![
        (
            "preferred_above_max",
            dynamic("preferred_batch_size: [ 4, 9 ]"),
            "dynamic batching preferred size must be <= max batch size",
        ),
        (
            "preferred_zero",
            dynamic("preferred_batch_size: 0"),
            "dynamic batching preferred size must be positive",
        ),
        (
            "preferred_negative",
            dynamic("preferred_batch_size: -2"),
            "dynamic batching preferred size must be positive",
        ),
        (
            "default_level_missing",
            dynamic("priority_levels: 2"),
            "default priority level must be in range [1, 2]",
        ),
        (
            "level_without_levels",
            dynamic(
                "priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 5 value { } }",
            ),
            "priority queue policy must have priority level in range [1, 1]",
        ),
        (
            "ordered_levels",
            dynamic("priority_levels: 2 default_priority_level: 1 preserve_ordering: true"),
            "Only one priority level is allowed when 'preserve_ordering' is true",
        ),
        ("delay_negative", dynamic("max_queue_delay_microseconds: -1"), ""),
        ("delay_beyond_all", dynamic("max_queue_delay_microseconds: 99999999999999999999"), ""),
        ("unknown_field", dynamic("patience: 3"), "patience"),
        ("unknown_action", dynamic("default_queue_policy { timeout_action: SHRUG }"), "SHRUG"),
        (
            "oldest_preferred_above_max",
            strategy("oldest { max_candidate_sequences: 4 preferred_batch_size: [ 9 ] }"),
            "sequence batching preferred batch size must be <= max batch size",
        ),
        (
            "utilization_above_one",
            strategy("direct { minimum_slot_utilization: 1.5 }"),
            "sequence batching minimum slot utilization must be in range (0.0, 1.0]",
        ),
        (
            "unknown_control",
            control("kind: CONTROL_SEQUENCE_MIDDLE int32_false_true: [ 0, 1 ]"),
            "CONTROL_SEQUENCE_MIDDLE",
        ),
        (
            "control_without_values",
            control("kind: CONTROL_SEQUENCE_START"),
            "sequence batching must specify either 'int32_false_true'",
        ),
        (
            "control_with_one_value",
            control("kind: CONTROL_SEQUENCE_START int32_false_true: [ 0 ]"),
            "must have exactly 2 entries",
        ),
        (
            "control_of_two_types",
            control(
                "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ]",
            ),
            "specifies more than one from",
        ),
        ("end_twice", direct(&ends), "sequence batching specifies multiple"),
        (
            "correlation_is_no_number",
            direct(&[correlation("FP32")]),
            "unexpected data type for control CONTROL_SEQUENCE_CORRID",
        ),
        (
            "initial_state_without_name",
            initial("data_type: TYPE_INT32 dims: [ 1 ] zero_data: true"),
            "",
        ),
        (
            "initial_state_of_another_type",
            initial("data_type: TYPE_FP32 dims: [ 1 ] zero_data: true name: \"zero\""),
            "",
        ),
        (
            "initial_state_without_file",
            initial("data_type: TYPE_INT32 dims: [ 1 ] data_file: \"nowhere\" name: \"lost\""),
            "nowhere",
        ),
        (
            "initial_state_twice",
            state(
                "initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: \"a\" } \
                 initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: \"b\" }",
            ),
            "exactly one or zero element",
        ),
    ]
}

/// Unusual valid configurations: name, scheduling, whether requests need a sequence.
fn unusual() -> Vec<(&'static str, String, bool)> {
    let dynamic = |text: &str| format!("dynamic_batching {{ {text} }}\n");
    let start = [flag("START", "int32")];
    vec![
        ("no_delay", dynamic("max_queue_delay_microseconds: 0"), false),
        (
            "timeout_zero",
            dynamic("default_queue_policy { default_timeout_microseconds: 0 }"),
            false,
        ),
        (
            "timeout_huge",
            dynamic(
                "default_queue_policy { default_timeout_microseconds: 18446744073709551615 allow_timeout_override: true }",
            ),
            false,
        ),
        ("queue_huge", dynamic("default_queue_policy { max_queue_size: 4294967295 }"), false),
        ("preferred_twice", dynamic("preferred_batch_size: [ 1, 1 ]"), false),
        ("idle_zero", sequences("0", "direct { }", &start), true),
        ("idle_huge", sequences("18446744073709551615", "direct { }", &start), true),
        ("no_controls", sequences(NEVER, "direct { }", &[]), true),
        ("no_strategy", sequences(NEVER, "", &start), true),
        ("only_end", sequences(NEVER, "direct { }", &[flag("END", "bool")]), true),
        ("candidates_zero", sequences(NEVER, "oldest { }", &start), true),
        (
            "candidates_huge",
            sequences(NEVER, "oldest { max_candidate_sequences: 2147483647 }", &start),
            true,
        ),
    ]
}

#[test]
fn invalid_configurations_are_refused() {
    let mut server = Server::new().flag("--exit-on-error=false");
    for (name, scheduling, _) in bad() {
        let config = if scheduling.starts_with("dynamic") {
            batcher(name, 8, &scheduling)
        } else {
            accumulator(name, 8, "slot", &scheduling)
        };
        server = server.model(name, config);
    }
    for (name, scheduling, _) in unusual() {
        server = server.model(name, accumulator(name, 8, "slot", &scheduling));
    }
    let many = sequences(NEVER, "direct { }", &[flag("START", "int32")]);
    server = server.model("slots_huge", accumulator("slots_huge", 2_147_483_647, "slot", &many));
    let server = server.start();

    let index = server.post("/v2/repository/index", &[], b"{}").json();
    let entries = index.as_array().cloned().unwrap_or_default();
    let mut wrong = String::new();
    for (name, _, why) in bad() {
        let entry = entries.iter().find(|entry| entry["name"] == name);
        let reason = entry.and_then(|entry| entry["reason"].as_str()).unwrap_or_default();
        if reason.is_empty() || !reason.contains(why) {
            let _ = writeln!(wrong, "{name}: the reason is {reason:?}, not {why:?}");
        }
        let status = server.get(&format!("/v2/models/{name}/ready")).status;
        if status != 400 {
            let _ = writeln!(wrong, "{name} responds with {status}: it is served");
        }
    }
    let huge = [("slots_huge", String::new(), true)];
    for (name, _, in_sequence) in unusual().into_iter().chain(huge) {
        let parameters = if in_sequence {
            r#""sequence_id":5,"sequence_start":true,"sequence_end":true"#
        } else {
            r#""timeout":18446744073709551615"#
        };
        let response = v2(&server, name, parameters, "[1,1]", "[7]");
        if response.status != 200 || response.json()["outputs"][0]["data"][0] != 7 {
            let _ = writeln!(wrong, "{name} responds with {} {}", response.status, response.text());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(server.stop().success());
}

/// An inference over HTTP v2 of an accumulator.
fn v2(server: &Running, model: &str, parameters: &str, shape: &str, data: &str) -> Response {
    let json = format!(
        r#"{{"parameters":{{{parameters}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":{shape},"data":{data}}}]}}"#
    );
    server.post(&format!("/v2/models/{model}/infer"), &[], json)
}

/// The same over HTTP v1; `fields` are those of a sequence.
fn v1(server: &Running, model: &str, fields: &str, rows: usize) -> Response {
    let header = format!(
        "batch_size: {rows} {fields} input {{ name: \"INPUT0\" dims: 1 }} output {{ name: \"OUTPUT0\" }}"
    );
    let bytes: Vec<u8> = 7i32.to_le_bytes().repeat(rows);
    server.send(request(
        "POST",
        &format!("/api/infer/{model}"),
        &[("NV-InferRequest", &header)],
        &bytes,
    ))
}

#[test]
fn invalid_requests_are_refused() {
    let controls = [flag("START", "int32"), flag("READY", "int32")];
    let mut server = Server::new();
    for (name, strategy) in [("direct", "direct { }"), ("oldest", "oldest { }")] {
        let scheduling = sequences(NEVER, strategy, &controls);
        server = server.model(name, accumulator(name, 4, "slot", &scheduling));
    }
    let levels = "dynamic_batching { priority_levels: 2 default_priority_level: 1 }\n";
    let server = server.model("ranked", accumulator("ranked", 1, "slot", levels)).start();
    let mut wrong = String::new();
    let mut expect = |what: &str, response: Response, status: u16, text: &str| {
        let error_text = response.error_text();
        if response.status != status || !error_text.contains(text) {
            let _ =
                writeln!(wrong, "{what}: {} {error_text}\n  not {status} {text}", response.status);
        }
    };
    for model in ["direct", "oldest"] {
        let one_row = format!(
            "inference request to model '{model}' must specify batch-size 1 due to requirements of sequence batcher"
        );
        let nonzero = format!("inference request to model '{model}' must specify a non-zero");
        let no_start = format!(
            "inference request for sequence 9 to model '{model}' must specify the START flag on the first request of the sequence"
        );
        // The protocol fixes the order of the checks: batch size, id, START.
        for (fields, rows, text) in [
            ("", 2, &one_row),
            ("correlation_id: 9", 2, &one_row),
            ("", 1, &nonzero),
            ("correlation_id: 0 flags: 3", 1, &nonzero),
            ("correlation_id: 9", 1, &no_start),
            ("correlation_id: 9 flags: 2", 1, &no_start),
            // Unknown flags are ignored.
            ("correlation_id: 9 flags: 4294967292", 1, &no_start),
        ] {
            let response = v1(&server, model, fields, rows);
            let error_text = response.error_text();
            expect(&format!("v1 {fields:?}"), response, 400, "code: INVALID_ARG ");
            let plain = error_text.replace("\\'", "'");
            assert!(plain.contains(text.as_str()), "v1 {fields:?} {rows}: {error_text}");
        }
        for (fields, shape, data, text) in [
            (r#""sequence_id":9,"sequence_start":true"#, "[2,1]", "[7,7]", &one_row),
            ("", "[1,1]", "[7]", &nonzero),
            (r#""sequence_id":0,"sequence_start":true"#, "[1,1]", "[7]", &nonzero),
            (r#""sequence_id":"","sequence_start":true"#, "[1,1]", "[7]", &nonzero),
            (r#""sequence_id":9"#, "[1,1]", "[7]", &no_start),
            (r#""sequence_id":"9""#, "[1,1]", "[7]", &no_start),
            (r#""sequence_id":9,"sequence_end":true"#, "[1,1]", "[7]", &no_start),
        ] {
            expect(&format!("v2 {fields}"), v2(&server, model, fields, shape, data), 400, text);
        }
        // Of the wrong type.
        for fields in [
            r#""sequence_id":-1,"sequence_start":true"#,
            r#""sequence_id":1.5,"sequence_start":true"#,
            r#""sequence_id":[1],"sequence_start":true"#,
            r#""sequence_id":9,"sequence_start":1"#,
            r#""sequence_id":9,"sequence_end":"yes""#,
        ] {
            let response = v2(&server, model, fields, "[1,1]", "[7]");
            let refused = [400, 500].contains(&response.status);
            assert!(refused, "{fields}: {} {}", response.status, response.text());
        }
        expect(
            "negative id",
            v1(&server, model, "correlation_id: -1 flags: 1", 1),
            400,
            "unable to parse",
        );
        // None of these has started or blocked a sequence.
        let response = v1(&server, model, "correlation_id: 9 flags: 3", 1);
        assert_eq!((response.status, &response.body[..4]), (200, &7i32.to_le_bytes()[..]));
        let response = v2(
            &server,
            model,
            r#""sequence_id":18446744073709551615,"sequence_start":true,"sequence_end":true"#,
            "[1,1]",
            "[7]",
        );
        assert_eq!(response.status, 200, "{}", response.text());
    }
    for fields in
        [r#""priority":-1"#, r#""priority":"high""#, r#""timeout":-5"#, r#""timeout":"soon""#]
    {
        let response = v2(&server, "ranked", fields, "[1,1]", "[7]");
        assert!([400, 500].contains(&response.status), "{fields}: {}", response.text());
    }
    for fields in [r#""priority":18446744073709551615"#, r#""timeout":0"#] {
        let response = v2(&server, "ranked", fields, "[1,1]", "[7]");
        assert_eq!(response.status, 200, "{fields}: {}", response.text());
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(server.stop().success());
}
