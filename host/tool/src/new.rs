//! `trtserver plugin new`: creates a small working backend from a template.
//!
//! The Rust and C sources are those of `examples/backends` with another name; headers and crates
//! are those of `plugin-api`, so that no copy can become outdated.

mod framework; // with --framework
mod interface;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trtserver_model_config::ENSEMBLE;
use trtserver_server::default_backend_dirs;

/// Longest name; file systems allow much longer ones.
const MAX_NAME: usize = 64;

/// Linker version script of projects in C and C++.
const EXPORTS: (&str, &str) = ("exports.map", include_str!("../sources/exports.map"));

const EXPORTS_ROW: (&str, &str) = ("exports.map", "what the library exports: its entry symbol");

/// Name of the interface's crate, which is the folder `plugin-api` of a checkout.
const PLUGIN_API: &str = "trtserver-plugin-api";
/// Where a project in Rust has its copy.
const VENDOR: &str = "vendor/plugin-api";

macro_rules! headers {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../sources/include/", $path)))),*]
    };
}

const C_HEADERS: &[(&str, &str)] = headers![
    "trtserver.h",
    "types.h",
    "request.h",
    "descriptors.h",
    "host.h",
    "backend.h",
    "extensions.h",
    "inference.h",
];
const CPP_HEADERS: &[(&str, &str)] = headers![
    "backend.hpp",
    "cpp/base.hpp",
    "cpp/device.hpp",
    "cpp/context.hpp",
    "cpp/response.hpp",
    "cpp/request.hpp"
];

/// Files for all languages; `{name}` is replaced by the backend's name.
const COMMON: &[(&str, &str)] = &[
    ("plugin.toml", include_str!("templates/plugin.toml")),
    ("request.json", include_str!("templates/request.json")),
    (".gitignore", include_str!("../sources/gitignore")),
    ("models/{name}_example/1/.gitkeep", ""),
];

const README: &str = include_str!("templates/README.md");
const CONFIG: &str = include_str!("../sources/config.pbtxt");

pub fn new_command() -> Command {
    Command::new("new")
        .about("Creates a new backend from a template: source, build, a model and a request")
        .after_help(
            "Exit status: 0 = created, 1 = not created, with the reason, 2 = wrong usage.",
        )
        .arg(Arg::new("NAME").required(true).help("Name of the backend in model configurations: letters, digits and _"))
        .arg(
            Arg::new("lang")
                .long("lang")
                .value_name("LANGUAGE")
                .required(true)
                .value_parser(PossibleValuesParser::new(["rust", "c", "cpp"]))
                .help("The language of the backend"),
        )
        .arg(
            Arg::new("dir")
                .long("dir")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Directory to create; may exist if it is empty [default: NAME]"),
        )
        .arg(Arg::new("framework").long("framework").action(ArgAction::SetTrue).help(
            "For Rust: a backend around the library of a framework, which is found at run time: models in files, \
             completion of configurations, tests with damaged files",
        ))
        .arg(Arg::new("plugin-api").long("plugin-api").value_name("PATH|URL").help(
            "For Rust: use the crates of a checkout of the server (its folder plugin-api) or of a git repository (its \
             URL) [default: the crates of this version, copied into the project]",
        ))
}

/// # Errors
/// The name is invalid, the folder is in use or cannot be written, or `--plugin-api` names no
/// crate.
pub fn run_new(matches: &ArgMatches) -> Result<ExitCode, String> {
    let text = |id: &str| matches.get_one::<String>(id).map(String::as_str);
    let name = text("NAME").unwrap_or_default();
    let language = text("lang").unwrap_or_default();
    check_name(name)?;
    let plugin_api = text("plugin-api");
    let around_framework = matches.get_flag("framework");
    let files = match language {
        "rust" if around_framework => {
            framework::framework_project(name, &InterfaceSource::find(plugin_api)?)?
        }
        _ if around_framework => {
            return Err(format!(
                "trtserver plugin new: --framework is for Rust, in which what backends of frameworks share is written; \
                 a project in {language} has no such template"
            ));
        }
        "rust" => rust(name, &InterfaceSource::find(plugin_api)?)?,
        _ if plugin_api.is_some() => {
            return Err(format!(
                "trtserver plugin new: --plugin-api is for Rust; a project in {language} contains the headers"
            ));
        }
        "c" => c(name),
        _ => cpp(name),
    };
    let dir = matches.get_one::<PathBuf>("dir").cloned().unwrap_or_else(|| PathBuf::from(name));
    write_all(&dir, &files)?;
    let shown = dir.display();
    // A model of a backend around a framework has an incomplete configuration.
    let more = if around_framework { " --strict-model-config=false" } else { "" };
    let summary = format!(
        "{shown}: a backend '{name}' in {language}; README.md says more\n  \
         cd {shown} && make\n  trtserver --model-repository models --backend-dir .{more}\n  \
         curl -s localhost:8000/v2/models/{name}_example/infer -d @request.json\n"
    );
    // The project exists even if the pipe is closed.
    let _ = std::io::stdout().write_all(summary.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn check_name(name: &str) -> Result<(), String> {
    let refuse = |why: &dyn Display| {
        Err(format!(
            "trtserver plugin new: '{name}' is not a valid name for a backend: {why} (letters, digits and _, \
             beginning with a letter, at most {MAX_NAME})"
        ))
    };
    let wrong = name.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_');
    match name.chars().next() {
        None => refuse(&"it is empty"),
        _ if wrong.is_some() => refuse(&format!("it contains '{}'", wrong.unwrap_or_default())),
        Some(first) if !first.is_ascii_alphabetic() => refuse(&format!("it begins with '{first}'")),
        _ if name.len() > MAX_NAME => refuse(&format!("it has {} characters", name.len())),
        _ if is_reserved(name) => refuse(&"the server has a backend of that name"),
        _ => Ok(()),
    }
}

/// Whether the name has another meaning in model configurations: the server's own platform, or an
/// installed backend of this server.
fn is_reserved(name: &str) -> bool {
    let installed = default_backend_dirs().into_iter().any(|dir| dir.join(name).is_dir());
    name == ENSEMBLE || installed
}

/// Path and contents of a file of the new project.
type File = (String, String);

fn project(name: &str, makefile: &str, about: &[(&str, &str)]) -> Vec<File> {
    let fill = |text: &str| text.replace("{name}", name);
    let rows: Vec<_> =
        about.iter().map(|(file, what)| format!("| `{}` | {what} |", fill(file))).collect();
    let mut files: Vec<File> = COMMON.iter().map(|(path, text)| (fill(path), fill(text))).collect();
    files.push(("Makefile".into(), fill(makefile)));
    files.push(("README.md".into(), fill(&README.replace("{files}", &rows.join("\n")))));
    let config = CONFIG.replace("c_addsub", name);
    files.push((fill("models/{name}_example/config.pbtxt"), config));
    files
}

fn include(files: &mut Vec<File>, headers: &[(&str, &str)]) {
    let under =
        |(path, text): &(&str, &str)| (format!("include/trtserver/{path}"), (*text).to_owned());
    files.extend(headers.iter().map(under));
}

fn c(name: &str) -> Vec<File> {
    let rows = [("{name}.c", "the backend"), ("include/", "the interface"), EXPORTS_ROW];
    let mut files = project(name, include_str!("templates/c.mk"), &rows);
    let source = include_str!("../sources/addsub.c");
    files.push((format!("{name}.c"), source.replace("c_addsub", name)));
    files.push((EXPORTS.0.to_owned(), EXPORTS.1.to_owned()));
    include(&mut files, C_HEADERS);
    files
}

fn cpp(name: &str) -> Vec<File> {
    let rows = [("{name}.cpp", "the backend"), ("include/", "the interface"), EXPORTS_ROW];
    let mut files = project(name, include_str!("templates/cpp.mk"), &rows);
    let source = include_str!("templates/backend.cpp");
    files.push((format!("{name}.cpp"), source.replace("{name}", name)));
    files.push((EXPORTS.0.to_owned(), EXPORTS.1.to_owned()));
    include(&mut files, C_HEADERS);
    include(&mut files, CPP_HEADERS);
    files
}

fn rust(name: &str, source: &InterfaceSource) -> Result<Vec<File>, String> {
    let mut rows = vec![
        ("src/lib.rs", "the backend"),
        ("src/tests.rs", "its tests, without a server"),
        ("Cargo.toml", "the package, with its dependency on the interface"),
    ];
    if *source == InterfaceSource::Vendored {
        rows.push(("vendor/", "the interface, and a host for tests"));
    }
    let mut files = project(name, include_str!("templates/rust.mk"), &rows);
    let mut take = |path: &str, text: &str| {
        files.push((path.to_owned(), text.replace("rust_addsub", name)));
    };
    take("src/lib.rs", include_str!("../sources/rust-addsub/lib.rs"));
    take("src/tests.rs", include_str!("../sources/rust-addsub/tests.rs"));
    take("Cargo.lock", include_str!("../sources/rust-addsub.lock"));
    let manifest = include_str!("../sources/rust-addsub.toml");
    let about = "# On no registry: the folder plugin-api of a checkout of the server, or { git = \"URL of its repository\" }.";
    let manifest = manifest
        .replace(about, source.about())
        .replace("{ path = \"../../../plugin-api\" }", &source.dependency("")?)
        .replace("{ path = \"../../../plugin-api/testkit\" }", &source.dependency("testkit")?);
    take("Cargo.toml", &manifest);
    if *source == InterfaceSource::Vendored {
        files.extend(vendored_interface()?);
    }
    Ok(files)
}

/// The crates of the interface, in a project.
fn vendored_interface() -> Result<Vec<File>, String> {
    let under = |(path, text): File| (format!("{VENDOR}/{path}"), text);
    Ok(interface::interface_files()?.into_iter().map(under).collect())
}

/// Where a project finds the interface's crates.
#[derive(Debug, PartialEq)]
enum InterfaceSource {
    /// A copy in the project.
    Vendored,
    /// URL of the server's git repository.
    Git(String),
    /// The folder `plugin-api`.
    Folder(PathBuf),
}

impl InterfaceSource {
    fn find(given: Option<&str>) -> Result<Self, String> {
        if let Some(url) = given.filter(|given| is_url(given)) {
            return Ok(Self::Git(url.to_owned()));
        }
        let folder = match given {
            Some(path) => crate_in(Path::new(path)).ok_or_else(|| {
                format!(
                    "trtserver plugin new: --plugin-api={path}: neither it nor its folder plugin-api is the crate \
                     {PLUGIN_API}"
                )
            })?,
            None => return Ok(Self::Vendored),
        };
        Ok(Self::Folder(folder))
    }

    /// A comment on the dependencies.
    fn about(&self) -> &'static str {
        match self {
            Self::Vendored => concat!(
                "# On no registry: a copy of the version of trtserver ",
                env!("CARGO_PKG_VERSION"),
                ". A backend runs on newer servers, too."
            ),
            Self::Git(_) | Self::Folder(_) => "# On no registry.",
        }
    }

    /// The dependency on the crate in this subfolder, as in Cargo.toml.
    fn dependency(&self, subfolder: &str) -> Result<String, String> {
        let folder = match self {
            Self::Vendored if subfolder.is_empty() => PathBuf::from(VENDOR),
            Self::Vendored => Path::new(VENDOR).join(subfolder),
            Self::Git(url) => return Ok(format!("{{ git = {} }}", quoted(url))),
            Self::Folder(folder) if subfolder.is_empty() => folder.clone(),
            Self::Folder(folder) => folder.join(subfolder),
        };
        let path = folder.to_str().ok_or_else(|| {
            let shown = folder.display();
            format!("trtserver plugin new: {shown}: Cargo takes paths in UTF-8 only")
        })?;
        Ok(format!("{{ path = {} }}", quoted(path)))
    }
}

fn is_url(text: &str) -> bool {
    text.contains("://") || text.starts_with("git@")
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// The folder of the interface's crate: this one or `plugin-api` in it.
fn crate_in(folder: &Path) -> Option<PathBuf> {
    [folder.to_path_buf(), folder.join("plugin-api")].into_iter().find_map(|folder| {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        let manifest: toml::Table = manifest.parse().ok()?;
        let name = manifest.get("package")?.get("name")?.as_str()?;
        (name == PLUGIN_API).then(|| folder.canonicalize().ok()).flatten()
    })
}

/// Writes all files below `dir`, which must not exist or be empty.
fn write_all(dir: &Path, files: &[File]) -> Result<(), String> {
    let wrap =
        |path: &Path, e: std::io::Error| format!("trtserver plugin new: {}: {e}", path.display());
    match std::fs::read_dir(dir) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(format!(
                    "trtserver plugin new: '{}' exists and is not empty; nothing was written (choose another place \
                     with --dir)",
                    dir.display()
                ));
            }
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(wrap(dir, e)),
    }
    for (path, text) in files {
        let path = dir.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| wrap(folder, e))?;
        }
        // A file that was created meanwhile is not replaced.
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| wrap(&path, e))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "new_tests.rs"]
mod tests;
