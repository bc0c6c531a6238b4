//! Settings of the server: values of flags read, checked, and with defaults filled in.
//!
//! Pure: nothing here exits, prints, binds or reads the model repository. The files it reads are
//! the `--config` file and, when the server asks for it, the `--platform-config-file`.

#![forbid(unsafe_code)]

mod access_settings;
mod address;
mod auth_file;
mod auth_scope;
mod backend_config;
mod build;
mod cache_settings;
pub mod cli;
mod conflicts;
mod cors_origins;
mod device_flags;
mod fairness_settings;
mod header_pattern;
pub mod log;
mod metrics_config;
mod notes;
pub mod platform_config;
mod program;
mod rate_limit_settings;
mod restrictions;
mod settings;
#[cfg(test)]
mod testing;
mod tls_settings;
mod trace_settings;
mod values;

pub use access_settings::{AccessSettings, ControlAddress};
pub use address::ListenAddress;
pub use auth_file::{
    ANONYMOUS, AuthCredential, AuthFile, AuthName, CertificateName, MAX_AUTH_FILE,
};
pub use auth_scope::{AccessKind, AccessScope, AccessedModels, ModelPattern, NeededScope};
pub use backend_config::{BackendConfig, backend_settings};
pub use cache_settings::CacheSettings;
pub use cli::BuildFacts;
pub use cors_origins::CorsOrigins;
pub use fairness_settings::{ClientSource, FairnessSettings};
pub use header_pattern::HeaderPattern;
pub use notes::StartNote;
pub use program::ProgramName;
pub use rate_limit_settings::{RateLimitResource, RateLimitSettings};
pub use restrictions::{ApiGroup, ApiRestrictions, HeaderRestriction};
pub use settings::{
    ConnectionSettings, ControlMode, LoadReportMode, LogFormat, LogSettings, MaxConnections,
    ServerSettings, UnreadLimits,
};

pub use tls_settings::{TlsFiles, TlsSettings};
pub use trace_settings::{TraceConfig, TraceLevels, TraceMode, TraceValues};

use crate::cli::{CliInvocation, GivenFlags};
use std::ffi::OsString;
use values::FlagValues;

/// Settings of a server that can start.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerStart {
    pub settings: ServerSettings,
    /// To be logged once the log is set up.
    pub notes: Vec<StartNote>,
}

/// The program has to print these texts and exit with this code.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessExit {
    pub code: u8,
    pub stdout: String,
    pub stderr: String,
}

/// Settings from a command line, the program's own name first. `facts` are for `--version`.
pub fn from_args<'a>(
    args: impl IntoIterator<Item = OsString>,
    env: &dyn Fn(&str) -> Option<String>,
    facts: impl Into<BuildFacts<'a>>,
) -> Result<ServerStart, ProcessExit> {
    let refuse = |error: String| ProcessExit {
        code: 1,
        stdout: String::new(),
        stderr: format!("{error}\nUsage: {}\ntrtserver --help lists the flags.\n", cli::USAGE),
    };
    let args: Vec<OsString> = args.into_iter().collect();
    let program = ProgramName::from_argument(args.first().map(OsString::as_os_str));
    let print = |code, stdout| ProcessExit { code, stdout, stderr: String::new() };
    let flags = match cli::parse_args(args, &cli::version_text(facts.into())).map_err(refuse)? {
        CliInvocation::Serve(flags) => cli::with_config_file(flags).map_err(refuse)?,
        CliInvocation::Help(text) => return Err(print(program.help_code(), text)),
        CliInvocation::Version(text) => return Err(print(0, text)),
    };
    start_settings(&flags, program, env).map_err(refuse)
}

fn start_settings(
    flags: &GivenFlags,
    program: ProgramName,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<ServerStart, String> {
    let values = FlagValues::read(flags)?;
    let notes = notes::collect_notes(flags, &values)?;
    let settings = build::build_settings(flags, &values, program, env)?;
    conflicts::check_conflicts(&settings)?;
    Ok(ServerStart { settings, notes })
}

#[cfg(test)]
#[path = "start_lines_tests.rs"]
mod start_lines_tests;
#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
