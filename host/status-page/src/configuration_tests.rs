//! Unit tests of `configuration.rs`.

use super::*;

/// The lines of a report: path, value, line and what the source has instead.
fn fields(source: &str, complete: &str) -> Vec<String> {
    let config: ModelConfig = trtserver_proto::text::parse(complete).unwrap();
    let origin = ConfigOrigin::File("config.pbtxt".into());
    let source = ConfigSource { origin, text: source.into() };
    let found = trace_fields(&config_value(&config).unwrap(), Some(&source)).unwrap();
    let line = |field: FieldReport| {
        let line = field.line.map_or("-".to_owned(), |line| line.to_string());
        let written = field.written.map(|value| format!(" was {value}")).unwrap_or_default();
        format!("{} = {} @{line}{written}", field.path, field.value)
    };
    found.into_iter().map(line).collect()
}

#[test]
fn values_have_the_line_that_they_come_from() {
    let source = r#"name: "m"
max_batch_size: 4
input [
  { name: "B" data_type: TYPE_FP32
    dims: [ 2,
            3 ] },
  { name: "A" data_type: TYPE_INT32 dims: [ 1 ] }
]
parameters { key: "x" value { string_value: "one" } }
parameters {
  key: "y"
  value { string_value: "two" }
}"#;
    // As completed: another order, a platform, an instance group, and another batch size.
    let complete = r#"name: "m" platform: "p" max_batch_size: 8
input [ { name: "A" data_type: TYPE_INT32 dims: [ 1 ] },
        { name: "B" data_type: TYPE_FP32 dims: [ 2, 3 ] } ]
output { name: "O" data_type: TYPE_FP32 dims: [ 1 ] }
parameters { key: "x" value { string_value: "one" } }
parameters { key: "y" value { string_value: "two" } }
instance_group { name: "m_0" count: 1 kind: KIND_CPU }"#;
    let found = fields(source, complete);
    for expected in [
        "name = \"m\" @1",
        "platform = \"p\" @-",
        "max_batch_size = 8 @2 was 4",
        "input[0].name = \"A\" @7",
        "input[0].dims[0] = 1 @7",
        "input[1].name = \"B\" @4",
        "input[1].dims[0] = 2 @5",
        "input[1].dims[1] = 3 @6",
        "output[0].name = \"O\" @-",
        "parameters.x.string_value = \"one\" @9",
        "parameters.y.string_value = \"two\" @12",
        "instance_group[0].count = 1 @-",
    ] {
        assert!(found.iter().any(|line| line == expected), "{expected}: {found:#?}");
    }
    // Empty values that nobody has written are left out.
    assert!(!found.iter().any(|line| line.starts_with("backend =")), "{found:#?}");
}

#[test]
fn an_instance_group_without_a_name_keeps_its_lines() {
    let found = fields(
        "instance_group [\n{ count: 2\n kind: KIND_CPU } ]",
        r#"instance_group { name: "m_0" count: 2 kind: KIND_CPU }"#,
    );
    assert!(found.contains(&"instance_group[0].count = 2 @2".to_owned()), "{found:#?}");
    assert!(found.contains(&"instance_group[0].kind = \"KIND_CPU\" @3".to_owned()), "{found:#?}");
    assert!(found.contains(&"instance_group[0].name = \"m_0\" @-".to_owned()), "{found:#?}");
}

#[test]
fn without_a_source_all_values_are_completed() {
    let config: ModelConfig = trtserver_proto::text::parse("name: \"m\"").unwrap();
    let found = trace_fields(&config_value(&config).unwrap(), None).unwrap();
    assert!(found.iter().all(|field| field.line.is_none()), "{found:?}");
    let json = configuration_json(&config, None).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&json["name"], json.get("source")), (&Value::from("m"), None));
}
