//! The clap command built from the catalogue: `--help`, `--version` and the grammar of the command
//! line.

use super::catalogue::{FlagKind, FlagSpec, FlagStatus, SECTIONS};
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;

/// The lines after `Usage: `.
pub const USAGE: &str = "trtserver --model-repository DIR [FLAGS]\n       trtserver check [FLAGS] DIR…\n       \
     trtserver plugin list|check|new …\n       trtserver backend fetch NAME";

/// What `--version` prints beside the version of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildFacts<'a> {
    /// Version of the plugin interface (ABI).
    pub abi: &'a str,
    /// The source's commit, if the build was told.
    pub commit: Option<&'a str>,
    /// Optional parts that were compiled.
    pub features: &'a [&'a str],
}

/// With the version of the plugin interface alone.
impl<'a> From<&'a str> for BuildFacts<'a> {
    fn from(abi: &'a str) -> Self {
        Self { abi, ..Self::default() }
    }
}

/// Text of `--version`. Scripts read its first line.
pub fn version_text(facts: BuildFacts<'_>) -> String {
    let BuildFacts { abi, commit, features } = facts;
    let commit = commit.unwrap_or("unknown (not built as a package)");
    let features = if features.is_empty() { "none".to_owned() } else { features.join(" ") };
    let version = env!("CARGO_PKG_VERSION");
    format!("{version} (plugin ABI {abi})\ncommit: {commit}\nfeatures: {features}")
}

/// The clap command. Values stay strings; `config` interprets them.
pub fn build_command(version: &str) -> Command {
    let mut command = Command::new("trtserver")
        .about("Inference server: serves models over HTTP and gRPC (TRTIS v1 and Open Inference Protocol v2)")
        .version(version.to_owned())
        .override_usage(USAGE)
        .after_help(
            "Write values as --flag=value or --flag value, and booleans as true/false, 1/0 or on/off. \
             A flag name may be abbreviated to a unique prefix.\n\n\
             trtserver check validates a model repository without a server; see trtserver check --help.\n\n\
             trtserver plugin lists the backends in a directory, checks a backend against the plugin interface, \
             and creates new backend projects; see trtserver plugin --help.",
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
                        .help("Print this help"),
                )
                .arg(
                    Arg::new("version")
                        .long("version")
                        .short('V')
                        .action(ArgAction::Version)
                        .help("Print the versions of the server and of the plugin interface"),
                );
        }
        command = command.args(flags.iter().map(build_arg));
    }
    command
}

/// The argument of one flag.
pub fn build_arg(flag: &'static FlagSpec) -> Arg {
    let arg = Arg::new(flag.name)
        .long(flag.name)
        .aliases(flag.aliases.iter().copied())
        .value_parser(clap::value_parser!(OsString))
        .value_name(flag_metavar(flag.kind))
        .action(if flag.repeatable { ArgAction::Append } else { ArgAction::Set })
        .help(flag_help(flag));
    match flag.kind {
        FlagKind::Bool | FlagKind::Verbosity => {
            arg.num_args(0..=1).default_missing_value("true").allow_negative_numbers(true)
        }
        _ => arg.num_args(1).allow_negative_numbers(true),
    }
}

fn flag_metavar(kind: FlagKind) -> String {
    match kind {
        FlagKind::Bool => "true|false".to_owned(),
        FlagKind::Int { .. } | FlagKind::Count | FlagKind::Verbosity => "N".to_owned(),
        FlagKind::Float => "X".to_owned(),
        FlagKind::Size => "BYTES".to_owned(),
        FlagKind::Text(placeholder) | FlagKind::Path(placeholder) => placeholder.to_owned(),
        FlagKind::Choice(values) => values.join("|"),
    }
}

fn flag_help(flag: &FlagSpec) -> String {
    let mut text = flag.help.to_owned();
    if !flag.default.is_empty() && flag.default != "false" {
        text += &format!(" [default: {}]", flag.default);
    }
    if flag.repeatable {
        text += " [repeatable]";
    }
    if !flag.aliases.is_empty() {
        let names: Vec<_> = flag.aliases.iter().map(|a| format!("--{a}")).collect();
        text += &format!(" [alias: {}]", names.join(", "));
    }
    match flag.status {
        FlagStatus::Effective => {}
        FlagStatus::NoEffect(reason) => text += &format!("\nAccepted, no effect: {reason}"),
        FlagStatus::Warns { reason, .. } => text += &format!("\nAccepted with a warning: {reason}"),
        FlagStatus::Unsupported { feature, .. } => {
            text += &format!("\nNot supported yet: {feature}")
        }
    }
    text
}
