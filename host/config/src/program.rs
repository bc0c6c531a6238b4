//! The name under which the program was started.

use std::ffi::OsStr;
use std::path::Path;

/// Decides the exit status of `--help`, the start lines in the log, what `--model-store` means and
/// when the ports open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramName {
    /// `inference_server`: TRTIS 18.04 to 18.09.
    InferenceServer,
    /// `trtserver`, as from 18.10 to v1.15, and every name that is not another one here.
    Trtserver,
    /// `tritonserver`.
    Tritonserver,
}

impl ProgramName {
    /// The program that the first word of a command line names.
    pub fn from_argument(argument: Option<&OsStr>) -> Self {
        let name = argument.map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
        match name {
            Some("inference_server") => Self::InferenceServer,
            Some("tritonserver") => Self::Tritonserver,
            _ => Self::Trtserver,
        }
    }

    /// Exit status of `--help`.
    pub fn help_code(self) -> u8 {
        match self {
            Self::InferenceServer | Self::Trtserver => 1,
            Self::Tritonserver => 0,
        }
    }
}
