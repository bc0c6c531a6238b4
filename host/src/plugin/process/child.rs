//! The process itself: `trtserver plugin-host`, started by a server and by nobody else.

use std::process::ExitCode;

/// Serves the host at the other end of standard input until it closes the connection.
pub fn run() -> ExitCode {
    eprintln!("trtserver plugin-host: not built yet");
    ExitCode::from(1)
}
