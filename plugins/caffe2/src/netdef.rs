//! NetDef files: protobuf, binary or text.
//!
//! The text is read by prost-reflect and not by `proto/src/text`, which reads `config.pbtxt` and v1
//! headers with tables of those messages alone, the host's names and hints, and which a plugin
//! would get together with all of gRPC.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};

/// The generated messages.
#[allow(clippy::all, rustdoc::all)]
mod messages {
    include!(concat!(env!("OUT_DIR"), "/caffe2.rs"));
}

pub use messages::tensor_proto::DataType;
pub use messages::{Argument, NetDef, OperatorDef};

const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/netdef.bin"));

/// Nesting of messages in a text; the binary form has the same limit.
const MAX_DEPTH: usize = 100;

/// Reads a net: binary, else text, as Caffe2 does. The beginning of a text is not a binary message.
///
/// # Errors
/// The bytes are not a net; says why.
pub fn read_net(bytes: &[u8]) -> Result<NetDef, String> {
    NetDef::decode(bytes).or_else(|error| match std::str::from_utf8(bytes) {
        Ok(text) if is_text(text) => read_text(text),
        _ => Err(format!("it is not a binary NetDef: {error}")),
    })
}

/// Whether a net that is not binary was meant to be text: tags of binary operators are control
/// characters.
fn is_text(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'))
}

fn read_text(text: &str) -> Result<NetDef, String> {
    if depth(text) > MAX_DEPTH {
        return Err(format!("its text is nested more than {MAX_DEPTH} levels deep"));
    }
    let wrong = |error: &dyn std::fmt::Display| format!("it is not a NetDef in text form: {error}");
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(|error| wrong(&error))?;
    let net = pool.get_message_by_name("caffe2.NetDef").ok_or_else(|| wrong(&"no descriptor"))?;
    let message = DynamicMessage::parse_text_format(net, text).map_err(|error| wrong(&error))?;
    NetDef::decode(message.encode_to_vec().as_slice()).map_err(|error| wrong(&error))
}

/// The deepest nesting of a text. The parser is recursive and has no limit.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'<' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b'>' | b']' => depth = depth.saturating_sub(1),
            b'#' => while bytes.next().is_some_and(|byte| byte != b'\n') {},
            quote @ (b'"' | b'\'') => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => {
                            bytes.next();
                        }
                        // A string ends with its line: what follows an unclosed one is nesting
                        // again.
                        b'\n' => break,
                        _ if byte == quote => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
#[path = "netdef_tests.rs"]
mod tests;
