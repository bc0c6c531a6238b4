//! `trtserver backend fetch`: the files of a backend that comes in Python packages, put into a
//! backend directory by pip.
//!
//! What to fetch is not known here: a plugin brings a fetch manifest (`fetch/NAME.toml` beside an
//! adapter). The program has no HTTP client of its own for this: pip knows the user's index, proxy
//! and certificates, and refuses a package whose SHA-256 is another one.
//!
//! ```text
//! <backend directory>/.NAME-<version>-python3.11/   the files, as the packages lay them out
//! <backend directory>/NAME                          a link to the backend's folder among them
//! ```

mod interpreter;
mod manifest;
mod packages;
mod place;

use super::parse_arguments;
use clap::{Arg, ArgMatches, Command, value_parser};
use interpreter::Interpreter;
use manifest::FetchManifest;
use place::FetchPlace;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs `trtserver backend` with these arguments. Exit status: 0 = the backend is there, 1 = it is
/// not, with the reason, 2 = wrong usage.
pub fn run_backend(args: impl Iterator<Item = OsString>) -> ExitCode {
    let about = "Fetches backends that are not part of the server. No server is needed.";
    let command = Command::new("trtserver backend")
        .about(about)
        .after_help("Exit status: 0 = the backend is there, 1 = it is not, with the reason, 2 = wrong usage.")
        .subcommand_required(true)
        .subcommand(fetch_command());
    let matches = match parse_arguments(command, args) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    let Some(matches) = matches.subcommand_matches("fetch") else { return ExitCode::from(2) };
    super::finish(run_fetch(matches), 1)
}

fn fetch_command() -> Command {
    let long = "Downloads the packages of a backend with pip, checks their SHA-256, and puts the files that are needed \
                into a backend directory. pip's settings count: PIP_INDEX_URL, PIP_NO_INDEX with PIP_FIND_LINKS, \
                HTTPS_PROXY, pip.conf. What is there already is not fetched again.\n\nExit status: 0 = the backend is \
                there, 1 = it is not, with the reason, 2 = wrong usage.";
    let path = || value_parser!(PathBuf);
    Command::new("fetch")
        .about("Fetches a backend with pip into a backend directory")
        .long_about(long)
        .arg(Arg::new("NAME").required(true).help("The backend: 'python', say"))
        .arg(
            Arg::new("into")
                .long("into")
                .value_name("DIR")
                .value_parser(path())
                .help("The backend directory [default: trtserver/backends in the user's cache directory]"),
        )
        .arg(
            Arg::new("interpreter")
                .long("python")
                .value_name("PROGRAM")
                .default_value("python3")
                .value_parser(path())
                .help("The Python whose pip downloads, and for which the files are"),
        )
        .arg(
            Arg::new("manifest")
                .long("manifest")
                .value_name("FILE")
                .value_parser(path())
                .help("A fetch manifest instead of the installed one, for another release or packages of your own"),
        )
}

fn run_fetch(matches: &ArgMatches) -> Result<ExitCode, String> {
    let name = matches.get_one::<String>("NAME").map(String::as_str).unwrap_or_default();
    let path = |id: &str| matches.get_one::<PathBuf>(id);
    let text = |e: String| format!("trtserver backend fetch {name}: {e}");
    let file = match path("manifest") {
        Some(file) => file.clone(),
        None => manifest::find_installed(name).map_err(text)?,
    };
    let manifest = FetchManifest::read(&file).map_err(text)?;
    if let Some(wrong) = name.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '_') {
        return Err(text(format!(
            "the name of a backend has letters, digits and _, not '{wrong}'"
        )));
    }
    let directory = match path("into") {
        Some(directory) => directory.clone(),
        None => default_directory().map_err(text)?,
    };
    let program = path("interpreter").cloned().unwrap_or_default();
    fetch_backend(name, &manifest, &program, &directory).map_err(text)
}

fn fetch_backend(
    name: &str,
    manifest: &FetchManifest,
    program: &Path,
    directory: &Path,
) -> Result<ExitCode, String> {
    let interpreter = Interpreter::ask(program)?;
    manifest.check_interpreter(&interpreter)?;
    if manifest.libpython.is_some() {
        interpreter.shared_library()?;
    }
    let manifest = manifest.for_python(&interpreter.minor_version());
    let place = FetchPlace::open(directory, name, &manifest.version, &interpreter)?;
    let title = format!("{} for Python {}", manifest.title, interpreter.minor_version());
    if place.is_complete(&manifest) {
        progress(&format!("{title} is there already"));
    } else {
        interpreter.check_pip()?;
        progress(&format!(
            "fetching {title} ({} MB) into {}",
            manifest.megabytes,
            directory.display()
        ));
        let partial = place.begin()?;
        let packages = packages::download(&interpreter, &manifest, &partial)?;
        progress("checksums are right; unpacking");
        packages::unpack(&interpreter, &packages, &manifest, &partial)?;
        place.finish(&manifest, &interpreter)?;
    }
    place.link_backend(&manifest)?;
    let (directory, backend) = (directory.display(), directory.join(name));
    let done = format!(
        "{}: {title}\n  trtserver --model-repository=models --backend-directory={directory}\n",
        backend.display()
    );
    // The backend is there even if the pipe is closed.
    let _ = std::io::stdout().write_all(done.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// Standard output has the result alone.
fn progress(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// `trtserver/backends` in the user's cache directory.
fn default_directory() -> Result<PathBuf, String> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    let cache = absolute("XDG_CACHE_HOME").or_else(home);
    cache.map(|cache| cache.join("trtserver/backends")).ok_or_else(|| {
        "no cache directory: neither XDG_CACHE_HOME nor HOME is an absolute path; --into=DIR names another place"
            .to_owned()
    })
}
