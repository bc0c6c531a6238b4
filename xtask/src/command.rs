//! Runs other programs. Errors contain the command line and a hint what to do.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::thread::ScopedJoinHandle;

/// Errors are texts for the terminal; no code handles them.
pub type Result<T> = std::result::Result<T, String>;

/// Prints a progress line.
pub fn say(text: impl AsRef<str>) {
    eprintln!("xtask: {}", text.as_ref());
}

/// The cargo that started this program, so that a toolchain selected with `+name` stays selected.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Variables that cargo set for this program must not affect the programs it builds.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|n| n.starts_with("CARGO_PKG_") || n.starts_with("CARGO_BIN"))
        {
            command.env_remove(name);
        }
    }
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    command
}

/// Runs `command` to completion with the terminal's input and output. `hint` says what to do when
/// it fails.
pub fn run(command: &mut Command, hint: &str) -> Result<()> {
    let status = command.status().map_err(|e| cannot_start(command, &e, hint))?;
    if status.success() { Ok(()) } else { Err(failed(command, &status.to_string(), hint)) }
}

/// Runs `command` to completion and returns what it printed; its errors go to the terminal.
pub fn output(command: &mut Command, hint: &str) -> Result<String> {
    let out = command.stderr(Stdio::inherit()).output();
    let out = out.map_err(|e| cannot_start(command, &e, hint))?;
    if !out.status.success() {
        return Err(failed(command, &out.status.to_string(), hint));
    }
    String::from_utf8(out.stdout).map_err(|e| format!("`{}`: {e}", line(command)))
}

/// The result of a thread.
pub fn joined<T>(thread: ScopedJoinHandle<Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err("a thread panicked, see above".to_owned()))
}

/// The command line, quoted for a shell.
fn line(command: &Command) -> String {
    let quote = |a: &OsStr| {
        let a = a.to_string_lossy();
        if a.is_empty() || a.contains(|c: char| c.is_whitespace() || "'\"$;()<>|&".contains(c)) {
            format!("'{}'", a.replace('\'', r"'\''"))
        } else {
            a.into_owned()
        }
    };
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(quote)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The error of a program that did not start.
pub fn cannot_start(command: &Command, error: &std::io::Error, hint: &str) -> String {
    let reason = if error.kind() == ErrorKind::NotFound {
        "not found".to_owned()
    } else {
        error.to_string()
    };
    format!("cannot start `{}`: {reason}{}", line(command), hint_text(hint))
}

/// The error of a program that ended with `status`.
pub fn failed(command: &Command, status: &str, hint: &str) -> String {
    format!("`{}` failed ({status}){}", line(command), hint_text(hint))
}

fn hint_text(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("\n  {hint}") }
}
