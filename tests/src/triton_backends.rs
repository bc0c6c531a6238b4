//! Backends of Triton's interface, compiled from `tests/triton`, in folders as below
//! `/opt/tritonserver/backends`.

use crate::compile::{compile, compiled, folder};
use crate::install::root;
use crate::repository::parameters;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

/// The name of the host's library in backends of Triton's container.
pub const SONAME: &str = "libtritonserver.so";
/// The name that the repair tool of Python wheels gave it in the package that
/// `cargo xtask runtimes --triton` fetches.
pub const SONAME_IN_WHEEL: &str = "libtritonserver-717102f0.so";

/// Flags that the backend `contract` expects in its settings.
pub const CONTRACT_FLAGS: [&str; 2] =
    ["--backend-config=default-max-batch-size=4", "--backend-config=contract,colour=blue"];

/// A backend of several sources.
struct Source {
    name: &'static str,
    main: &'static str,
    others: &'static [&'static str],
}

const CONTRACT: Source = Source {
    name: "contract",
    main: "contract.c",
    others: &[
        "check.c",
        "check_factory.c",
        "check_model.c",
        "check_nested.c",
        "check_own_request.c",
        "check_requests.c",
        "check_responses.c",
        "check_state.c",
        "check_unused.c",
        "check_values.c",
    ],
};

const ROGUE: Source = Source { name: "rogue", main: "rogue.c", others: &["check.c"] };

/// A folder with the backend of tests/triton/rogue.c under each of these names, which decide where
/// it misbehaves.
pub fn rogues(names: &[&str]) -> TempDir {
    static LIBRARY: LazyLock<TempDir> = LazyLock::new(|| build(&ROGUE, SONAME));
    let dir = folder();
    for name in names {
        let backend = dir.path().join(name);
        fs::create_dir(&backend).unwrap_or_else(|e| panic!("{}: {e}", backend.display()));
        let library = LIBRARY.path().join("rogue/libtriton_rogue.so");
        fs::copy(&library, backend.join(format!("libtriton_{name}.so")))
            .unwrap_or_else(|e| panic!("{}: {e}", library.display()));
    }
    dir
}

/// Adds the backend of tests/triton/unusable.c, with one of its macros.
pub fn unusable(dir: &Path, name: &str, macro_name: &str) {
    let backend = dir.join(name);
    fs::create_dir(&backend).unwrap_or_else(|e| panic!("{}: {e}", backend.display()));
    let library = backend.join(format!("libtriton_{name}.so"));
    let (_host, linked) = host(SONAME);
    let options = [vec![format!("-D{macro_name}")], linked].concat();
    compile("tests/triton/unusable.c", &library, &options);
}

/// The same, linked without the host's library.
pub fn unlinked(dir: &Path, name: &str) {
    let backend = dir.join(name);
    fs::create_dir(&backend).unwrap_or_else(|e| panic!("{}: {e}", backend.display()));
    let library = backend.join(format!("libtriton_{name}.so"));
    compile("tests/triton/unusable.c", &library, &["-DNEXT_MAJOR".to_owned()]);
}

/// Adds the backend of tests/triton/throws.cc, with one of its macros.
pub fn throws(dir: &Path, name: &str, macro_name: &str) {
    let backend = dir.join(name);
    fs::create_dir(&backend).unwrap_or_else(|e| panic!("{}: {e}", backend.display()));
    let library = backend.join(format!("libtriton_{name}.so"));
    compile("tests/triton/throws.cc", &library, &[format!("-D{macro_name}")]);
}

/// A folder with `contract/libtriton_contract.so`, which checks every function of the host that it
/// is linked with by this name.
pub fn contract(soname: &str) -> &'static Path {
    static CONTAINER: LazyLock<TempDir> = LazyLock::new(|| build(&CONTRACT, SONAME));
    static WHEEL: LazyLock<TempDir> = LazyLock::new(|| build(&CONTRACT, SONAME_IN_WHEEL));
    if soname == SONAME { CONTAINER.path() } else { WHEEL.path() }
}

/// The batching strategy of tests/triton/batch_strategy.c, with one of its macros or none.
pub fn batch_strategy(soname: &str, macro_name: Option<&str>) -> Vec<u8> {
    let (_host, linked) = host(soname);
    let check = root().join("tests/triton/check.c").display().to_string();
    let mut options = vec!["-D_GNU_SOURCE".to_owned(), "-pthread".to_owned(), check];
    options.extend(macro_name.map(|name| format!("-D{name}")));
    options.extend(linked);
    compiled("tests/triton/batch_strategy.c", &options)
}

/// An empty library in place of the host's, and the options that link it.
fn host(soname: &str) -> (TempDir, Vec<String>) {
    let dir = folder();
    let empty = dir.path().join(soname);
    compile("tests/triton/empty.c", &empty, &[format!("-Wl,-soname,{soname}")]);
    let options = vec!["-Wl,--no-as-needed".to_owned(), empty.display().to_string()];
    (dir, options)
}

/// Compiles and links the backend as authors do, with an empty library in place of the host's.
fn build(source: &Source, soname: &str) -> TempDir {
    let dir = folder();
    let backend = dir.path().join(source.name);
    fs::create_dir(&backend).unwrap_or_else(|e| panic!("{}: {e}", backend.display()));
    let (_host, linked) = host(soname);
    let sources = root().join("tests/triton");
    let mut options = vec!["-D_GNU_SOURCE".to_owned(), "-pthread".to_owned()];
    options.extend(source.others.iter().map(|file| sources.join(file).display().to_string()));
    options.extend(linked);
    let library = backend.join(format!("libtriton_{}.so", source.name));
    compile(&format!("tests/triton/{}", source.main), &library, &options);
    dir
}

const ONE_INSTANCE: &str = "instance_group [ { kind: KIND_CPU count: 1 } ]\n";
const PRIORITIES: &str = "dynamic_batching { priority_levels: 5 default_priority_level: 2 }\n";
/// Triton allows profiles only for this platform.
const PROFILES: &str = r#"platform: "tensorrt_plan"
instance_group [ { kind: KIND_CPU count: 1 profile: [ "0", "7" ]
  secondary_devices [ { kind: KIND_NVDLA device_id: 1 } ] host_policy: "mine" } ]
"#;
const WORDS: &str = r#"{ name: "WORDS" data_type: TYPE_STRING dims: [ -1 ] }"#;
const TEXT: &str = r#"{ name: "TEXT" data_type: TYPE_STRING dims: [ -1 ] }"#;
const STATE: &str = r#"sequence_batching { state [ { input_name: "SUM_IN" output_name: "SUM" data_type: TYPE_INT32 dims: [ 1 ]
  initial_state { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ] }
"#;

/// The models of tests/python/triton_contract.py: name and configuration.
pub fn contract_models() -> Vec<(&'static str, String)> {
    models().into_iter().filter(|(name, _)| *name != UNUSED && *name != GPU).collect()
}

/// The model that checks answers of this server that are not Triton's: name and configuration.
pub fn unused_model() -> Option<(&'static str, String)> {
    models().into_iter().find(|(name, _)| *name == UNUSED)
}

/// The model that checks memory of a GPU: name and configuration.
pub fn gpu_model() -> Option<(&'static str, String)> {
    models().into_iter().find(|(name, _)| *name == GPU)
}

const UNUSED: &str = "unused";
const GPU: &str = "gpu";

fn models() -> Vec<(&'static str, String)> {
    let model = |name: &'static str, input: &str, output: &str, more: &str| {
        let check = if matches!(name, "plain" | "inner") { "" } else { name };
        let tensor = |name| format!("{{ name: \"{name}\" data_type: TYPE_INT32 dims: [ 4 ] }}");
        let list = |kind, first, more: &str| match more {
            "" => format!("{kind} [ {} ]\n", tensor(first)),
            more => format!("{kind} [ {}, {more} ]\n", tensor(first)),
        };
        let text = format!(
            "backend: \"contract\"\nmax_batch_size: 8\n{}{}{more}{}",
            list("input", "INPUT0", input),
            list("output", "OUTPUT0", output),
            parameters(&[("check", check)])
        );
        (name, text)
    };
    let decoupled = format!("{ONE_INSTANCE}model_transaction_policy {{ decoupled: true }}\n");
    vec![
        model("plain", "", "", ""),
        model("inner", "", "", &format!("{ONE_INSTANCE}{PRIORITIES}")),
        model("values", "", "", ONE_INSTANCE),
        model("requests", TEXT, WORDS, ONE_INSTANCE),
        model("responses", "", WORDS, &format!("{ONE_INSTANCE}dynamic_batching {{ }}\n")),
        model("factory", "", "", &decoupled),
        model("state", "", "", &format!("{ONE_INSTANCE}{STATE}")),
        model("nested", "", "", ONE_INSTANCE),
        model("cancel", "", "", ONE_INSTANCE),
        model("profiles", "", "", PROFILES),
        model(UNUSED, "", "", ONE_INSTANCE),
        model(GPU, "", "", "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]\n"),
        ("complete", format!("backend: \"contract\"\n{}", parameters(&[("check", "complete")]))),
    ]
}

/// Links every entry of one folder into another, so that both kinds of backends lie side by side.
pub fn link_all(from: &Path, into: &Path) {
    for entry in fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display())).flatten()
    {
        let link = into.join(entry.file_name());
        symlink(entry.path(), &link).unwrap_or_else(|e| panic!("{}: {e}", link.display()));
    }
}
