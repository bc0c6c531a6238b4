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

    /// ONNX Runtime found that an output has another shape than the block that it was given for it.
    pub fn is_wrong_block(&self) -> bool {
        // No code of its own: the first is how the newest releases word it, the second how older ones do.
        self.text.contains("pre-allocated") || self.text.contains("shape verification failed")
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
