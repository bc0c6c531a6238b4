//! Errors inside this library: code and text, and whether the backend misused the interface.

use crate::handles::HandleFault;
use std::fmt::{self, Display};
use trtserver_plugin_api::abi::types::code;

pub type Result<T, E = TritonFault> = std::result::Result<T, E>;

/// An error inside this library: its code, its text, and whether the backend misused the
/// interface. Codes are those of the plugin interface, of which 0 to 7 are also Triton's.
#[derive(Debug)]
pub struct TritonFault {
    pub code: u32,
    pub text: String,
    /// A wrong handle or argument: also written to the log, since backends may drop what a function
    /// returns.
    pub misuse: bool,
}

impl TritonFault {
    pub fn new(code: u32, text: impl Display) -> TritonFault {
        TritonFault { code, text: text.to_string(), misuse: false }
    }

    pub fn internal(text: impl Display) -> TritonFault {
        TritonFault::new(code::INTERNAL, text)
    }

    pub fn invalid(text: impl Display) -> TritonFault {
        TritonFault::new(code::INVALID, text)
    }

    pub fn not_found(text: impl Display) -> TritonFault {
        TritonFault::new(code::NOT_FOUND, text)
    }

    pub fn unsupported(text: impl Display) -> TritonFault {
        TritonFault::new(code::UNSUPPORTED, text)
    }

    pub fn unavailable(text: impl Display) -> TritonFault {
        TritonFault::new(code::UNAVAILABLE, text)
    }

    /// The backend passed what its interface forbids.
    pub fn misuse(text: impl Display) -> TritonFault {
        TritonFault { misuse: true, ..TritonFault::invalid(text) }
    }

    /// Puts `what: ` before the text.
    pub fn context(self, what: impl Display) -> TritonFault {
        TritonFault { text: format!("{what}: {}", self.text), ..self }
    }

    /// The code as Triton numbers it.
    pub fn triton_code(&self) -> u32 {
        match self.code {
            known if known <= code::CANCELLED => known,
            code::DEADLINE | code::EXHAUSTED | code::ABORTED => code::UNAVAILABLE,
            code::PERMISSION => code::INVALID,
            code::DEVICE_LOST => code::INTERNAL,
            _ => code::UNKNOWN,
        }
    }
}

impl Display for TritonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<HandleFault> for TritonFault {
    fn from(fault: HandleFault) -> TritonFault {
        TritonFault::misuse(fault)
    }
}
