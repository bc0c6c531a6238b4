//! The headers and the Rust types are one interface: sizes, offsets, types, constants, both
//! compilers.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests too

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::mem::offset_of;
use std::path::PathBuf;
use std::process::Command;
use trtserver_plugin_api::abi::{
    backend, descriptors, extensions, host, inference, request, types,
};

const HEADERS: [&str; 8] = [
    "types.h",
    "request.h",
    "descriptors.h",
    "host.h",
    "backend.h",
    "extensions.h",
    "inference.h",
    "trtserver.h",
];

struct Struct {
    name: &'static str,
    size: usize,
    align: usize,
    fields: Vec<Field>,
}

struct Field {
    name: &'static str,
    offset: usize,
    size: usize,
    rust: &'static str,
}

fn type_and_size<T, F>(_: fn(&T) -> &F) -> (&'static str, usize) {
    (std::any::type_name::<F>(), size_of::<F>())
}

macro_rules! structs {
    ($($of:ident::$rust:ident => $c:ident { $($field:ident),* $(,)? })*) => {
        fn structs() -> Vec<Struct> {
            vec![$({
                // Without `..`: a field that this list forgets does not compile.
                let _complete = |it: &$of::$rust| { let $of::$rust { $($field: _),* } = it; };
                Struct {
                    name: stringify!($c),
                    size: size_of::<$of::$rust>(),
                    align: align_of::<$of::$rust>(),
                    fields: vec![$({
                        let (rust, size) = type_and_size(|it: &$of::$rust| &it.$field);
                        Field { name: stringify!($field), offset: offset_of!($of::$rust, $field), size, rust }
                    }),*],
                }
            }),*]
        }
    };
}

structs! {
    types::Str => trts_str { p, n }
    types::Bytes => trts_bytes { p, n }
    types::Memory => trts_memory { memory_type, device_id }
    types::Buf => trts_buf { ptr, bytes, memory, ready, memory_handle }
    types::Tensor => trts_tensor { name, index, dtype, rank, flags, shape, bytes, n_parts, pad, parts }
    types::Param => trts_param { key, kind, pad, text, bits }
    types::Extension => trts_extension { name, version, pad }
    types::Backlog => trts_backlog { bytes, responses, limit, reserved }
    request::RequestedOutput => trts_requested_output { name, index, classes }
    request::Request => trts_request { size, handle, responder, id, correlation_id_string, correlation_id, flags, batch_size, priority, received_ns, queued_ns, deadline_ns, cancelled, n_inputs, n_requested_outputs, n_params, pad, inputs, requested_outputs, params, timeout_us, reserved }
    request::Batch => trts_batch { size, id, n_requests, rows, requests, exec_start_ns, compute_start_ns, compute_end_ns, exec_end_ns, reserved }
    descriptors::ModelDesc => trts_model_desc { size, scope, name, version, dir, version_dir, file, config_pb, config_json, settings, n_settings, autocomplete, params, n_params, max_batch_size, inputs, outputs, n_inputs, n_outputs, graph_level, n_instances, threads, pad, state, reserved }
    descriptors::TensorDecl => trts_tensor_decl { name, dtype, rank, dims, model_dims, model_rank, flags }
    descriptors::SecondaryDevice => trts_secondary_device { kind, id }
    descriptors::InstanceDesc => trts_instance_desc { size, scope, name, host_policy_json, kind, ordinal, device_id, passive, device_uuid, cpus, n_cpus, threads, numa_node, max_rows, cu_context, cu_stream, cu_copy_in, cu_copy_out, profiles, n_profiles, n_secondary, secondary, reserved }
    descriptors::PreferredGroup => trts_preferred_group { kind, count }
    descriptors::BackendInfo => trts_backend_info { size, name, version, runtime, platforms, default_files, extensions, required_extensions, n_platforms, n_extensions, n_required_extensions, flags, max_in_flight, input_memory_types, output_memory_types, instance_kinds, stack_kib, align, n_preferred, gpu_max_in_flight, preferred, decoupled_max_in_flight, pad, reserved }
    host::HostTable => trts_host_table { size, abi_major, abi_minor, name, version, flags, n_extensions, extensions, get_extension, error_new, error_code, error_text, error_free, log_level, log, now_ns, config_patch, progress, gather, request_release, responder_detach, responder_release, response_new, response_free, output_alloc, output_adopt, response_param, response_send, responder_finish, responder_backlog, scatter_alloc, scatter_adopt, batch_finish }
    backend::BackendTable => trts_backend_table { size, abi_major, abi_minor, backend_info, backend_open, backend_close, model_open, model_close, instance_open, instance_close, execute, get_extension }
    extensions::MetricsExtension => trts_metrics_extension { size, metric_new, metric_put, metric_get, metric_free, metric_add }
    extensions::BatchPartsExtension => trts_batch_parts_extension { size, begin }
    extensions::ProcessExtension => trts_process_extension { size, restart }
    extensions::TraceExtension => trts_trace_extension { size, activity, context }
    extensions::TraceContext => trts_trace_context { trace_id, span_id, sampled, pad, state }
    extensions::HistogramsExtension => trts_histograms_extension { size, histogram_new }
    extensions::MemoryExtension => trts_memory_extension { size, memory_alloc, memory_free, memory_report }
    extensions::DeviceExtension => trts_device_extension { size, event_new, event_record, event_wait, event_query, event_destroy, copy, device_fault }
    extensions::AutocompleteExtension => trts_autocomplete_extension { size, autocomplete, state_free }
    extensions::CancelExtension => trts_cancel_extension { size, cancel }
    extensions::BatchSize => trts_batch_size { rows, pad, run_ns }
    extensions::BatchSizesExtension => trts_batch_sizes_extension { size, batch_sizes }
    extensions::DirEntry => trts_dir_entry { name, is_dir, pad }
    extensions::ProbeDesc => trts_probe_desc { size, name, version, version_dir, platform, default_file, entries, n_entries, pad, reserved }
    extensions::ModelProbeExtension => trts_model_probe_extension { size, model_probe }
    inference::NestedInput => trts_nested_input { name, dtype, rank, shape, parts, n_parts, pad }
    inference::NestedRequest => trts_nested_request { size, model, version, id, correlation_id_string, correlation_id, priority, timeout_us, deadline_ns, flags, n_inputs, n_outputs, n_params, inputs, outputs, params, reserved }
    inference::NestedOutput => trts_nested_output { name, dtype, rank, shape, data }
    inference::NestedResponse => trts_nested_response { size, error, outputs, params, n_outputs, n_params, last, pad, version, reserved }
    inference::NestedHandler => trts_nested_handler { func, user }
    inference::ModelStatus => trts_model_status { size, version, ready, decoupled, reserved }
    inference::InferenceExtension => trts_inference_extension { size, infer, nested_cancel, nested_release, model_status, model_load, model_unload }
}

/// C's name of a Rust type that is not a struct of the list above.
fn base(rust: &str) -> String {
    let short = rust.rsplit("::").next().unwrap();
    let c = match short {
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "i32" => "int32_t",
        "u64" => "uint64_t",
        "i64" => "int64_t",
        "f64" => "double",
        "()" => "void",
        "Release" => "trts_release_fn",
        "RequestHandle" => "trts_request_handle",
        other => return format!("trts_{}", snake_case(other.trim_end_matches("Handle"))),
    };
    c.to_owned()
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// The C declaration of `decl` with the given Rust type.
fn declare(rust: &str, decl: &str, constant: bool) -> String {
    let qualifier = if constant { "const " } else { "" };
    if let Some(inner) = rust.strip_prefix("core::option::Option<") {
        return declare(inner.strip_suffix('>').unwrap(), decl, constant);
    }
    if let Some(rest) = rust.strip_prefix("unsafe extern \"C\" fn(") {
        let (args, result) = match rest.rsplit_once(") -> ") {
            Some((args, result)) => (args, result),
            None => (rest.strip_suffix(')').unwrap(), "()"),
        };
        let args: Vec<String> = args
            .split(", ")
            .filter(|arg| !arg.is_empty())
            .map(|arg| declare(arg, "", false))
            .collect();
        let args = if args.is_empty() { "void".to_owned() } else { args.join(", ") };
        return declare(result, &format!("(*{qualifier}{decl})({args})"), false);
    }
    if let Some(rest) = rust.strip_prefix('[') {
        let (element, n) = rest.strip_suffix(']').unwrap().split_once("; ").unwrap();
        return declare(element, &format!("({decl})[{n}]"), constant);
    }
    for (prefix, to_const) in [("*const ", true), ("*mut ", false)] {
        if let Some(target) = rust.strip_prefix(prefix) {
            // Bytes of no type are `void` in C.
            let target = if target == "u8" { "()" } else { target };
            return declare(target, &format!("*{qualifier}{decl}"), to_const);
        }
    }
    format!("{qualifier}{} {decl}", base(rust))
}

fn include_dir() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "include"].iter().collect()
}

#[derive(Clone, Copy)]
enum Language {
    C,
    Cpp,
}

impl Language {
    const BOTH: [Language; 2] = [Language::C, Language::Cpp];

    fn compiler(self) -> Command {
        let (program, standard) = match self {
            Language::C => ("cc", "-std=c11"),
            Language::Cpp => ("c++", "-std=c++17"),
        };
        let mut command = Command::new(program);
        command.args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"]);
        command.arg(include_dir());
        command
    }

    fn suffix(self) -> &'static str {
        match self {
            Language::C => "c",
            Language::Cpp => "cc",
        }
    }

    /// Compiles a source text with further arguments; panics with the compiler's output.
    fn compile(self, stem: &str, source: &str, args: &[&str]) -> PathBuf {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let file = dir.join(format!("{stem}.{}", self.suffix()));
        let made = dir.join(format!("{stem}-{}", self.suffix()));
        std::fs::write(&file, source).unwrap();
        let out =
            self.compiler().args(args).arg("-o").arg(&made).arg(&file).output().expect("compiler");
        assert!(out.status.success(), "{stem}: {}", String::from_utf8_lossy(&out.stderr));
        made
    }
}

/// `pub const` items of the sources, as the headers must call them.
fn constants() -> BTreeMap<String, u32> {
    let prefixes = BTreeMap::from([
        ("memory_type", "MEMORY"),
        ("dtype", "DTYPE"),
        ("tensor_flags", "TENSOR"),
        ("param", "PARAM"),
        ("code", "CODE"),
        ("error_flags", "ERROR"),
        ("level", "LEVEL"),
        ("request_flags", "REQUEST"),
        ("instance_kind", "KIND"),
        ("backend_flags", "BACKEND"),
        ("send_flags", "SEND"),
        ("gather_mode", "GATHER"),
        ("patch_format", "PATCH"),
        ("metric_kind", "METRIC"),
        ("host_flags", "HOST"),
        ("device_verdict", "DEVICE"),
    ]);
    let sources = [
        include_str!("../src/abi/mod.rs"),
        include_str!("../src/abi/types.rs"),
        include_str!("../src/abi/request.rs"),
        include_str!("../src/abi/descriptors.rs"),
        include_str!("../src/abi/host.rs"),
        include_str!("../src/abi/backend.rs"),
        include_str!("../src/abi/extensions.rs"),
        include_str!("../src/abi/inference.rs"),
    ];
    let mut found = BTreeMap::new();
    for source in sources {
        let mut group = None;
        for line in source.lines() {
            if line == "}" {
                group = None;
            } else if let Some(name) =
                line.strip_prefix("pub mod ").and_then(|l| l.strip_suffix(" {"))
            {
                group = Some(*prefixes.get(name).unwrap_or_else(|| panic!("no prefix for {name}")));
            } else if let Some((name, value)) =
                line.trim().strip_prefix("pub const ").and_then(|l| l.split_once(": u32 = "))
            {
                let extension = name.ends_with("_VERSION").then_some("EXTENSION");
                let group = group.or(extension).map_or(String::new(), |group| format!("{group}_"));
                let value = value.trim_end_matches(';').parse().unwrap();
                found.insert(format!("TRTS_{group}{name}"), value);
            }
        }
    }
    found
}

/// A program that prints what the C side thinks, and does not compile if a field has another type.
fn program(structs: &[Struct], constants: &BTreeMap<String, u32>) -> String {
    let mut text = String::from(
        "#include <trtserver/trtserver.h>\n#include <trtserver/trtserver.h>\n\
         #include <stdalign.h>\n#include <stddef.h>\n#include <stdio.h>\n",
    );
    for s in structs {
        for f in &s.fields {
            // `void *` stands for bytes of any type, so those two are assigned by value.
            let (pointer, by) = if f.rust.ends_with(" u8") { ("v", "") } else { ("*v", "&") };
            let v = declare(f.rust, pointer, false);
            writeln!(
                text,
                "void type_of_{0}_{1}({0} *s);\nvoid type_of_{0}_{1}({0} *s) {{ {v} = {by}s->{1}; (void)v; }}",
                s.name, f.name
            )
            .unwrap();
        }
    }
    for (rust, c) in FUNCTIONS {
        let v = declare(rust(), "v", false);
        writeln!(text, "void type_of_{c}({c} f);\nvoid type_of_{c}({c} f) {{ {v} = f; (void)v; }}")
            .unwrap();
    }
    text += "int main(void) {\n";
    for s in structs {
        writeln!(text, "printf(\"{0} %zu %zu\\n\", sizeof({0}), alignof({0}));", s.name).unwrap();
        for f in &s.fields {
            writeln!(
                text,
                "printf(\"{0}.{1} %zu %zu\\n\", offsetof({0}, {1}), sizeof((({0} *)0)->{1}));",
                s.name, f.name
            )
            .unwrap();
        }
    }
    for name in constants.keys() {
        writeln!(text, "printf(\"{name} %u 0\\n\", (unsigned){name});").unwrap();
    }
    text + "return 0;\n}\n"
}

type Named = (fn() -> &'static str, &'static str);

fn release_func() -> &'static str {
    type_and_size(|it: &host::Release| &it.func).0
}

const FUNCTIONS: [Named; 2] = [
    (release_func, "trts_release_fn"),
    (std::any::type_name::<backend::BackendMain>, "trts_backend_main_fn"),
];

#[test]
fn c_and_cpp_layouts_equal_rust_layouts() {
    let (structs, constants) = (structs(), constants());
    assert!(constants.len() > 60, "too few constants found in the sources");
    let mut expected = BTreeMap::new();
    for s in &structs {
        expected.insert(s.name.to_owned(), (s.size, s.align));
        for f in &s.fields {
            expected.insert(format!("{}.{}", s.name, f.name), (f.offset, f.size));
        }
    }
    expected.extend(constants.iter().map(|(name, value)| (name.clone(), (*value as usize, 0))));
    for language in Language::BOTH {
        let program = language.compile("layout", &program(&structs, &constants), &[]);
        let out = Command::new(program).output().unwrap();
        let out = String::from_utf8(out.stdout).unwrap();
        for line in out.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let seen = (words[1].parse().unwrap(), words[2].parse().unwrap());
            assert_eq!(
                expected[words[0]],
                seen,
                "{}: Rust left, {} right",
                words[0],
                language.suffix()
            );
        }
        assert_eq!(out.lines().count(), expected.len());
    }
}

#[test]
fn structs_have_no_implicit_padding() {
    for s in structs() {
        let mut at = 0;
        for f in &s.fields {
            assert_eq!(f.offset, at, "implicit padding before {}.{}", s.name, f.name);
            at += f.size;
        }
        assert_eq!(at, s.size, "implicit padding at the end of {}", s.name);
    }
}

#[test]
fn headers_define_no_constant_that_rust_lacks() {
    let known = constants();
    let mut named = BTreeSet::new();
    for header in HEADERS {
        let text = std::fs::read_to_string(include_dir().join("trtserver").join(header)).unwrap();
        for (at, _) in text.match_indices("TRTS_") {
            let rest = &text[at..];
            let n =
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            if rest[n..].starts_with(" = ") {
                named.insert(rest[..n].to_owned());
            }
        }
    }
    let unknown: Vec<_> = named.iter().filter(|name| !known.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    // Version numbers are macros, all others are enumerators.
    let macros =
        known.keys().filter(|name| name.ends_with("_VERSION") || name.starts_with("TRTS_ABI_"));
    assert_eq!(named.len() + macros.count(), known.len());
}

#[test]
fn extension_names_equal_those_of_the_headers() {
    for (name, c) in [
        (extensions::METRICS, "METRICS"),
        (extensions::MEMORY, "MEMORY"),
        (extensions::DEVICE, "DEVICE"),
        (extensions::AUTOCOMPLETE, "AUTOCOMPLETE"),
        (extensions::CANCEL, "CANCEL"),
        (extensions::MODEL_PROBE, "MODEL_PROBE"),
        (inference::INFERENCE, "INFERENCE"),
    ] {
        let header = match name {
            inference::INFERENCE => include_str!("../include/trtserver/inference.h"),
            _ => include_str!("../include/trtserver/extensions.h"),
        };
        let line = format!("#define TRTS_EXTENSION_{c} \"{name}\"\n");
        assert!(header.contains(&line), "{line}");
    }
}

#[test]
fn each_header_compiles_alone() {
    for language in Language::BOTH {
        for header in HEADERS {
            let source = format!("#include <trtserver/{header}>\n");
            let stem = format!("alone-{}", header.trim_end_matches(".h"));
            language.compile(&stem, &source, &["-c"]);
        }
    }
}
