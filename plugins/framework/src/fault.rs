//! Errors of a plugin before conversion to errors of the interface: a code and a text.

use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_api::author::{Code, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFault {
    /// One of the interface's codes.
    pub code: u32,
    pub text: String,
}

impl PluginFault {
    /// Caused by the server or the model.
    pub fn internal(text: impl Into<String>) -> Self {
        Self { code: code::INTERNAL, text: text.into() }
    }

    /// Caused by the request or the configuration.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { code: code::INVALID, text: text.into() }
    }

    pub fn unsupported(text: impl Into<String>) -> Self {
        Self { code: code::UNSUPPORTED, text: text.into() }
    }

    pub fn unavailable(text: impl Into<String>) -> Self {
        Self { code: code::UNAVAILABLE, text: text.into() }
    }

    /// The same fault with a prefix that says where it happened.
    pub fn within(mut self, place: impl std::fmt::Display) -> Self {
        self.text = format!("{place}: {}", self.text);
        self
    }
}

impl std::fmt::Display for PluginFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<PluginFault> for Error {
    fn from(fault: PluginFault) -> Self {
        Error::new(Code::from_abi(fault.code), fault.text)
    }
}

impl From<Error> for PluginFault {
    fn from(error: Error) -> Self {
        PluginFault { code: error.code().to_abi(), text: error.text().to_owned() }
    }
}
