//! Unit tests of `fields.rs`.

use std::collections::BTreeMap;

use trtserver_proto::schema::Described;
use trtserver_proto::set_fields::all_fields;

use super::super::check::unsupported_fields;
use super::super::testing::parse;
use super::*;
use trtserver_base::compatibility_testing::{State, rows};

#[test]
fn table_decides_every_field_of_the_configuration_once() {
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    for row in TABLE {
        for field in row.fields {
            *rows.entry(row.path(field)).or_default() += 1;
        }
    }
    for field in all_fields(ModelConfig::schema()) {
        assert_eq!(rows.remove(&field), Some(1), "'{field}' needs one row of the table");
    }
    assert!(rows.is_empty(), "rows without a field: {rows:?}");
}

#[test]
fn fields_that_are_not_supported_are_refused() {
    let known = unsupported_fields();
    for row in TABLE.iter().filter(|row| matches!(row.used_by, Unsupported)) {
        for path in row.fields.iter().map(|field| row.path(field)) {
            assert!(known.iter().any(|field| is_below(&path, field)), "'{path}'");
        }
    }
}

/// Whether `field` is the field or a message that has it.
fn is_below(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[test]
fn compatibility_page_has_every_field_in_its_state() {
    let mut listed = BTreeMap::new();
    for row in rows("configuration.md") {
        for field in row.names("fields") {
            let within = row.names("within").iter();
            let path: Vec<_> = within.chain([field]).map(String::as_str).collect();
            let known = listed.insert(path.join("."), (row.state, row.place.clone(), false));
            assert!(known.is_none(), "{}: {field} has two rows", row.place);
        }
    }
    for row in TABLE {
        for path in row.fields.iter().map(|field| row.path(field)) {
            let mut parts: Vec<_> = path.split('.').filter(|part| *part != "value").collect();
            // The page has a map as one field.
            if parts.pop_if(|part| *part == "key").is_some() {
                continue;
            }
            let field = parts.join(".");
            let mut fitting = listed.iter_mut().filter(|(name, _)| is_below(&field, name));
            let Some((_, (state, place, found))) = fitting.next() else {
                panic!("docs/compatibility/configuration.md has no row for {field}");
            };
            assert!(fitting.next().is_none(), "{place}: {field} has another row");
            *found = true;
            let refused = || {
                let known = unsupported_fields();
                known.iter().any(|field| is_below(&path, field))
            };
            let fits = match row.used_by {
                Nothing(_) | Declared(0, _) => *state == State::NoEffect,
                Unsupported if refused() => *state == State::NotDone,
                Unsupported => *state == State::NoEffect,
                _ => matches!(state, State::Works | State::Differs),
            };
            assert!(fits, "{place}: {field} is {state:?}");
        }
    }
    for (field, (_, place, found)) in listed {
        assert!(found, "{place}: there is no field {field}");
    }
}

#[test]
fn settings_that_nothing_uses_are_named() {
    use backend_flags::{CUDA_GRAPHS, GRAPH_LEVELS, LISTS_FIELDS, OPERATION_LIBRARIES};
    let levels = LISTS_FIELDS | GRAPH_LEVELS;
    let graphs = LISTS_FIELDS | CUDA_GRAPHS;
    let libraries = LISTS_FIELDS | OPERATION_LIBRARIES;
    for (text, flags, fields) in [
        (
            "backend: 'b' optimization { graph { level: 1 } priority: PRIORITY_MAX }",
            levels,
            &[][..],
        ),
        (
            "backend: 'b' optimization { eager_batching: true gather_kernel_buffer_threshold: 1 }",
            levels,
            &["optimization.gather_kernel_buffer_threshold", "optimization.eager_batching"],
        ),
        ("backend: 'b' optimization { eager_batching: false }", levels, &[]),
        (
            "backend: 'b' instance_group { kind: KIND_GPU } optimization { eager_batching: true }",
            levels,
            &[],
        ),
        (
            "backend: 'b' optimization { cuda { graphs: true graph_spec { batch_size: 1
             input { key: 'a' value { dim: 1 } } } } }",
            levels,
            &["optimization.cuda.graphs", "optimization.cuda.graph_spec"],
        ),
        ("backend: 'b' optimization { cuda { graphs: true } }", graphs, &[]),
        ("backend: 'b' optimization { graph { level: 1 } }", graphs, &["optimization.graph.level"]),
        (
            "backend: 'b' optimization { cuda { busy_wait_events: true } }",
            graphs,
            &["optimization.cuda.busy_wait_events"],
        ),
        // What other backends read is not known.
        ("backend: 'mine' optimization { cuda { graphs: true busy_wait_events: true } }", 0, &[]),
        (
            "backend: 'b' model_operations { op_library_filename: 'a.so' }",
            levels,
            &["model_operations.op_library_filename"],
        ),
        ("backend: 'b' model_operations { op_library_filename: 'a.so' }", libraries, &[]),
        (
            "backend: 'mine' sequence_batching { state { use_same_buffer_for_input_output: true } }",
            0,
            &["sequence_batching.state.use_same_buffer_for_input_output"],
        ),
        ("backend: 'mine' parameters { key: 'a' value { string_value: 'b' } }", 0, &[]),
        ("platform: 'ensemble' default_model_filename: 'a'", 0, &["default_model_filename"]),
        (
            "backend: 'mine' optimization { input_pinned_memory { enable: false } output_pinned_memory { enable: true } }",
            0,
            &["optimization.input_pinned_memory"],
        ),
    ] {
        let warnings = without_effect(&parse(text), flags);
        let found: Vec<&str> = warnings.iter().map(|w| w.field.as_str()).collect();
        assert_eq!(found, fields, "{text}");
        for warning in &warnings {
            let start = format!("'{}' has no effect: ", warning.field);
            assert!(warning.message.starts_with(&start), "{}", warning.message);
        }
    }
}
