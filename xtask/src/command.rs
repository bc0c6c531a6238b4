//! Running other programs: every failure names the command line and what to do about it.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::Command;

/// Failures are sentences for the person at the terminal; nothing here is handled by code.
pub type Result<T> = std::result::Result<T, String>;

/// A line that says what is going on, apart from what the programs themselves print.
pub fn say(text: impl AsRef<str>) {
    eprintln!("xtask: {}", text.as_ref());
}

/// The cargo that started us, so that a toolchain chosen with `+name` stays chosen.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What cargo set for this program must not look like a setting to the programs it builds.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|n| n.starts_with("CARGO_PKG_") || n.starts_with("CARGO_BIN"))
        {
            command.env_remove(name);
        }
    }
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    command
}

/// Runs to the end with the terminal's input and output. `hint` tells what to install when it fails.
pub fn run(command: &mut Command, hint: &str) -> Result<()> {
    let status = command.status().map_err(|e| cannot_start(command, &e, hint))?;
    if status.success() { Ok(()) } else { Err(failed(command, &status.to_string(), hint)) }
}

/// The command as one could type it.
fn line(command: &Command) -> String {
    let word = |w: &OsStr| {
        let w = w.to_string_lossy();
        if w.is_empty() || w.contains(|c: char| c.is_whitespace() || "'\"$;()<>|&".contains(c)) {
            format!("'{}'", w.replace('\'', r"'\''"))
        } else {
            w.into_owned()
        }
    };
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}

fn cannot_start(command: &Command, error: &std::io::Error, hint: &str) -> String {
    let what = if error.kind() == ErrorKind::NotFound {
        "not found".to_owned()
    } else {
        error.to_string()
    };
    format!("cannot start `{}`: {what}{}", line(command), hint_text(hint))
}

fn failed(command: &Command, status: &str, hint: &str) -> String {
    format!("`{}` failed ({status}){}", line(command), hint_text(hint))
}

fn hint_text(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("\n  {hint}") }
}
