//! The command line: arguments and the `--config` file as flags, not yet interpreted. `config`
//! reads their values and knows their meaning.

pub mod catalogue;
mod config_file;
mod flags;
mod help;
mod suggest;

pub use flags::{FlagOrigin, GivenFlag, GivenFlags};
pub use help::{BuildFacts, USAGE, build_arg, build_command, version_text};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::path::Path;
use suggest::suggest_flag;

/// What the command line asks the program to do.
#[derive(Debug)]
pub enum CliInvocation {
    Serve(GivenFlags),
    /// Print this text and exit.
    Help(String),
    /// Print this text and exit.
    Version(String),
}

/// Parses a command line, the program's own name first.
///
/// # Errors
/// One or more lines for the user, without usage.
pub fn parse_args(
    args: impl IntoIterator<Item = OsString>,
    version: &str,
) -> Result<CliInvocation, String> {
    let args = args.into_iter().enumerate().map(|(i, a)| if i == 0 { a } else { add_dash(a) });
    match build_command(version).try_get_matches_from(args) {
        Ok(mut matches) => {
            let mut flags = GivenFlags::default();
            for flag in catalogue::all_flags() {
                if let Some(values) = matches.remove_many::<OsString>(flag.name) {
                    let values = values.collect();
                    flags.insert(flag, GivenFlag { values, origin: FlagOrigin::CommandLine });
                }
            }
            Ok(CliInvocation::Serve(flags))
        }
        Err(e) if e.kind() == ErrorKind::DisplayHelp => {
            Ok(CliInvocation::Help(e.render().to_string()))
        }
        Err(e) if e.kind() == ErrorKind::DisplayVersion => {
            Ok(CliInvocation::Version(e.render().to_string()))
        }
        Err(e) => Err(clap_message(&e)),
    }
}

/// Adds the flags of the `--config` file, if one was given.
pub fn with_config_file(mut flags: GivenFlags) -> Result<GivenFlags, String> {
    let Some(path) = flags.get("config").and_then(|g| g.values.last()).cloned() else {
        return Ok(flags);
    };
    flags.add_defaults(config_file::read_config_file(Path::new(&path))?);
    Ok(flags)
}

/// Accepts `-model-store=DIR`: old guides lost one of the dashes in typesetting.
fn add_dash(arg: OsString) -> OsString {
    let Some(rest) = arg.to_str().and_then(|a| a.strip_prefix('-')) else { return arg };
    let name = rest.split_once('=').map_or(rest, |(name, _)| name);
    match name {
        "model-store" | "modelstore" | "model-repository" | "model_base_path" => {
            format!("-{}", arg.to_string_lossy()).into()
        }
        _ => arg,
    }
}

/// Error text for what clap refused: ours for unknown flags and arguments, else clap's.
fn clap_message(e: &clap::Error) -> String {
    let arg = match e.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => arg.clone(),
        _ => String::new(),
    };
    match e.kind() {
        ErrorKind::UnknownArgument if arg.starts_with('-') => {
            let name = arg.trim_start_matches('-');
            let name = name.split_once('=').map_or(name, |(name, _)| name);
            let hint = suggest_flag(name, "--").map(|h| format!("\n{h}")).unwrap_or_default();
            format!("Unrecognized option: {arg}{hint}")
        }
        ErrorKind::UnknownArgument if arg == "plugin" => {
            "Unexpected argument: plugin\nThe command must come first: trtserver plugin …"
                .to_owned()
        }
        ErrorKind::UnknownArgument if arg == "check" => {
            "Unexpected argument: check\nThe command must come first: trtserver check …".to_owned()
        }
        ErrorKind::UnknownArgument => {
            let near = ["plugins", "list", "new"].contains(&arg.as_str());
            let hint = if near { "\nDid you mean the command trtserver plugin?" } else { "" };
            format!("Unexpected argument: {arg}{hint}")
        }
        _ => {
            let text = e.render().to_string();
            let text = text.lines().next().unwrap_or_default();
            text.strip_prefix("error: ").unwrap_or(text).to_owned()
        }
    }
}
