//! Errors of this backend before conversion to errors of the interface: a code and a text.

use trtserver_plugin_api::abi::types::code;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// One of the interface's codes.
    pub code: u32,
    pub text: String,
}

impl Fault {
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

    /// ONNX Runtime reports that an output has another shape than the block provided for it.
    pub fn is_wrong_block(&self) -> bool {
        // There is no error code for it: the first text is that of new releases, the second that of older ones.
        self.text.contains("pre-allocated") || self.text.contains("shape verification failed")
    }

    /// The same fault with a prefix that says where it happened.
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
