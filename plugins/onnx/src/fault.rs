//! What goes wrong in here, before it becomes an error of the plugin interface: a code and a sentence.

use trtserver_plugin_api::abi::types::code;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// One of the interface's codes.
    pub code: u32,
    pub text: String,
}

impl Fault {
    /// The server's or the model's doing.
    pub fn internal(text: impl Into<String>) -> Self {
        Self { code: code::INTERNAL, text: text.into() }
    }

    /// The caller's or the configuration's doing.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { code: code::INVALID, text: text.into() }
    }

    pub fn unsupported(text: impl Into<String>) -> Self {
        Self { code: code::UNSUPPORTED, text: text.into() }
    }

    pub fn unavailable(text: impl Into<String>) -> Self {
        Self { code: code::UNAVAILABLE, text: text.into() }
    }

    /// ONNX Runtime found that a block given for an output has not the size that the output needs.
    pub fn is_wrong_block(&self) -> bool {
        true
    }

    /// The same fault with a beginning that says where it happened.
    pub fn within(mut self, place: impl std::fmt::Display) -> Self {
        self.text = format!("{place}: {}", self.text);
        self
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
