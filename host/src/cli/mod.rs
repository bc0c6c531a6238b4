//! What was typed: words on the command line and keys in a file, by flag, not yet interpreted.
//!
//! What the values mean is for `config` to say; nothing here knows a default.

pub mod catalogue;
mod file;
mod suggest;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use catalogue::{Flag, Kind, SECTIONS, Status};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

pub use file::read as read_file;
pub use suggest::suggestion;

/// What may be typed, as the lines behind `Usage: `.
pub const USAGE: &str =
    "trtserver --model-repository DIR [FLAGS]\n       trtserver plugin list|check|new …";

/// Every flag that was given, under its first name.
#[derive(Debug, Default)]
pub struct Typed(BTreeMap<&'static str, Given>);

/// One flag as it was given: a single value, or several for a repeatable one.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    pub values: Vec<OsString>,
    pub origin: Origin,
}

/// Where a flag was given.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    CommandLine,
    File { path: PathBuf, line: usize },
}

/// Prefix of a complaint: nothing, or `FILE:LINE: `.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine => Ok(()),
            Origin::File { path, line } => write!(f, "{}:{line}: ", path.display()),
        }
    }
}

impl Typed {
    pub fn get(&self, name: &str) -> Option<&Given> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static Flag, &Given)> {
        catalogue::all().filter_map(|f| self.0.get(f.name).map(|given| (f, given)))
    }

    /// Takes from `file` what was not typed. A repeatable flag typed once hides all the file's.
    pub fn fill_from(&mut self, file: Typed) {
        for (name, given) in file.0 {
            self.0.entry(name).or_insert(given);
        }
    }
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Asked {
    Serve(Typed),
    /// Print this text and be done: `--help` or `--version`.
    Print(String),
}

/// Reads the words of a command line, the program's own name first. The error is one line or more
/// for the user, without usage.
pub fn parse(args: impl IntoIterator<Item = OsString>, version: &str) -> Result<Asked, String> {
    let words = args.into_iter().enumerate().map(|(i, w)| if i == 0 { w } else { undamaged(w) });
    match command(version).try_get_matches_from(words) {
        Ok(mut matches) => {
            let mut typed = Typed::default();
            for flag in catalogue::all() {
                if let Some(values) = matches.remove_many::<OsString>(flag.name) {
                    let values = values.collect();
                    typed.0.insert(flag.name, Given { values, origin: Origin::CommandLine });
                }
            }
            Ok(Asked::Serve(typed))
        }
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Ok(Asked::Print(e.render().to_string()))
        }
        Err(e) => Err(complaint(&e)),
    }
}

/// Old guides lost a dash in print: `-model-store=DIR`.
fn undamaged(word: OsString) -> OsString {
    let Some(rest) = word.to_str().and_then(|w| w.strip_prefix('-')) else { return word };
    let name = rest.split_once('=').map_or(rest, |(name, _)| name);
    match name {
        "model-store" | "modelstore" | "model-repository" | "model_base_path" => {
            format!("-{}", word.to_string_lossy()).into()
        }
        _ => word,
    }
}

/// Says in our words what clap found wrong; only flags and stray words need words of their own.
fn complaint(e: &clap::Error) -> String {
    let word = match e.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => word.clone(),
        _ => String::new(),
    };
    match e.kind() {
        ErrorKind::UnknownArgument if word.starts_with('-') => {
            let name = word.trim_start_matches('-');
            let name = name.split_once('=').map_or(name, |(name, _)| name);
            let hint = suggestion(name, "--").map(|h| format!("\n{h}")).unwrap_or_default();
            format!("Unrecognized option: {word}{hint}")
        }
        ErrorKind::UnknownArgument if word == "plugin" => {
            "Unexpected argument: plugin\nThe command plugin is the first word: trtserver plugin …"
                .to_owned()
        }
        ErrorKind::UnknownArgument => {
            let near = ["plugins", "list", "check", "new"].contains(&word.as_str());
            let hint = if near { "\nDid you mean the command trtserver plugin?" } else { "" };
            format!("Unexpected argument: {word}{hint}")
        }
        _ => {
            let text = e.render().to_string();
            let text = text.lines().next().unwrap_or_default();
            text.strip_prefix("error: ").unwrap_or(text).to_owned()
        }
    }
}

/// The clap command the catalogue describes. Values stay as typed; `config` reads them.
pub fn command(version: &str) -> Command {
    let mut command = Command::new("trtserver")
        .about("Serves models over HTTP and gRPC.")
        .version(version.to_owned())
        .override_usage(USAGE)
        .after_help(
            "A flag's value follows as --flag=value or --flag value. true and false may also be \
             written 1 and 0, or on and off. A flag may be shortened while it stays unambiguous.\n\n\
             trtserver plugin lists the backends in a directory, checks whether one keeps its promises, and \
             starts new ones; trtserver plugin --help says more.",
        )
        .infer_long_args(true)
        .next_line_help(true)
        .args_override_self(true)
        .disable_help_flag(true)
        .disable_version_flag(true);
    for (section, flags) in SECTIONS {
        command = command.next_help_heading(*section);
        if *section == "General" {
            command = command
                .arg(
                    Arg::new("help")
                        .long("help")
                        .short('h')
                        .action(ArgAction::Help)
                        .help("Print this"),
                )
                .arg(
                    Arg::new("version")
                        .long("version")
                        .short('V')
                        .action(ArgAction::Version)
                        .help("Print the versions of the server and of its plugin interface"),
                );
        }
        command = command.args(flags.iter().map(arg));
    }
    command
}

fn arg(flag: &'static Flag) -> Arg {
    let arg = Arg::new(flag.name)
        .long(flag.name)
        .aliases(flag.aliases.iter().copied())
        .value_parser(clap::value_parser!(OsString))
        .value_name(metavar(flag.kind))
        .action(if flag.repeatable { ArgAction::Append } else { ArgAction::Set })
        .help(help(flag));
    match flag.kind {
        Kind::Bool | Kind::Verbosity => {
            arg.num_args(0..=1).default_missing_value("true").allow_negative_numbers(true)
        }
        _ => arg.num_args(1).allow_negative_numbers(true),
    }
}

fn metavar(kind: Kind) -> String {
    match kind {
        Kind::Bool => "true|false".to_owned(),
        Kind::Int { .. } | Kind::Count | Kind::Verbosity => "N".to_owned(),
        Kind::Float => "X".to_owned(),
        Kind::Text(word) | Kind::Path(word) => word.to_owned(),
        Kind::Choice(values) => values.join("|"),
    }
}

fn help(flag: &Flag) -> String {
    let mut text = flag.help.to_owned();
    if !flag.default.is_empty() && flag.default != "false" {
        text += &format!(" [default: {}]", flag.default);
    }
    if !flag.aliases.is_empty() {
        let names: Vec<_> = flag.aliases.iter().map(|a| format!("--{a}")).collect();
        text += &format!(" [also: {}]", names.join(", "));
    }
    match flag.status {
        Status::Effective => {}
        Status::NoEffect(why) => text += &format!("\nAccepted, no effect: {why}"),
        Status::Warns { why, .. } => text += &format!("\nAccepted with a warning: {why}"),
        Status::NotYet { missing, .. } => text += &format!("\nNot available yet: {missing}"),
    }
    text
}

/// The version text: the server's, and that of the binary interface plugins are built for.
pub fn version_text(abi: &str) -> String {
    format!("{} (plugin ABI {abi})", env!("CARGO_PKG_VERSION"))
}

/// Reads `--config` where one was given and puts it under what was typed.
pub fn with_file(mut typed: Typed) -> Result<Typed, String> {
    let Some(path) = typed.get("config").and_then(|g| g.values.last()).cloned() else {
        return Ok(typed);
    };
    typed.fill_from(read_file(Path::new(&path))?);
    Ok(typed)
}
