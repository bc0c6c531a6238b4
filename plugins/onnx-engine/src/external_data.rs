//! Files that an ONNX model names: weights beside it (`external_data` of its tensors) and compiled
//! parts (nodes `EPContext`). They lie where files of the model may lie; what the library checks
//! itself differs from release to release.
//!
//! The file is read field by field, without the tensors' data, so that a large model costs little.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::model_files::FilePlaces;

/// Messages within messages. The parser of the library stops at 100.
const MAX_DEPTH: usize = 100;
/// Longest name of a file.
const MAX_NAME: u64 = 4096;
/// How the library itself refers to tensors in its memory. A file must not.
const MEMORY_TAG: &str = "*/_ORT_MEM_ADDR_/*";

/// The messages of an ONNX model that lead to names of files.
#[derive(Clone, Copy, Debug)]
enum MessageKind {
    Model,
    Training,
    Function,
    Graph,
    Node,
    Attribute,
    Sparse,
    Tensor,
    /// An entry of `external_data`.
    Entry,
}

impl MessageKind {
    /// What the field of this number is, if it leads further.
    fn field(self, number: u32) -> Option<Self> {
        Some(match (self, number) {
            (Self::Model, 7) | (Self::Training, 1 | 2) | (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Model, 20) => Self::Training,
            (Self::Model, 25) => Self::Function,
            (Self::Graph, 1) | (Self::Function, 7) => Self::Node,
            (Self::Node, 5) | (Self::Function, 11) => Self::Attribute,
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Self::Sparse,
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::Sparse, 1 | 2) => Self::Tensor,
            (Self::Tensor, 13) => Self::Entry,
            _ => return None,
        })
    }

    /// Whether the field of this number is a text that matters.
    fn is_text(self, number: u32) -> bool {
        matches!((self, number), (Self::Node, 4) | (Self::Attribute, 1 | 4) | (Self::Entry, 1 | 2))
    }
}

/// Why a walk ended early.
enum WalkFailure {
    /// The library refuses such a file, too, and says more.
    Malformed,
    /// The reason completes a sentence.
    Refused(String),
}

impl From<io::Error> for WalkFailure {
    fn from(_: io::Error) -> Self {
        Self::Malformed
    }
}

/// What matters in one message. Of a repeated field the last one counts.
#[derive(Default)]
struct MessageFields {
    texts: [String; 5],
    /// Field 3 of an attribute.
    integer: u64,
}

/// Reads the messages of a file in order.
struct ModelWalk<'a> {
    file: BufReader<File>,
    at: u64,
    /// Judges the name of a file.
    judge: &'a dyn Fn(&str) -> Result<(), String>,
}

/// What a node says of a compiled part.
#[derive(Default)]
struct CompiledNode {
    name: String,
    embedded: Option<u64>,
}

impl ModelWalk<'_> {
    fn byte(&mut self) -> Result<u8, WalkFailure> {
        let mut byte = [0];
        self.file.read_exact(&mut byte)?;
        self.at += 1;
        Ok(byte[0])
    }

    fn varint(&mut self) -> Result<u64, WalkFailure> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WalkFailure::Malformed)
    }

    /// Number and wire type of a field.
    fn tag(&mut self) -> Result<(u32, u32), WalkFailure> {
        // Parsers differ in what they make of the bits above 32.
        let unusual =
            |_| WalkFailure::Refused("has a field number that no ONNX model has".to_owned());
        let tag = u32::try_from(self.varint()?).map_err(unusual)?;
        Ok((tag >> 3, tag & 7))
    }

    /// A group, which no ONNX message has, with everything in it: the library skips it, too.
    fn skip_group(&mut self, group: u32, end: u64, depth: usize) -> Result<(), WalkFailure> {
        if depth > MAX_DEPTH {
            return Err(WalkFailure::Malformed);
        }
        while self.at < end {
            let (number, wire) = self.tag()?;
            match wire {
                0 => drop(self.varint()?),
                1 => self.skip(8)?,
                2 => {
                    let bytes = self.varint()?;
                    self.skip(bytes)?;
                }
                3 => self.skip_group(number, end, depth + 1)?,
                4 if number == group => return Ok(()),
                5 => self.skip(4)?,
                _ => return Err(WalkFailure::Malformed),
            }
        }
        Err(WalkFailure::Malformed)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), WalkFailure> {
        self.file.seek_relative(i64::try_from(bytes).map_err(|_| WalkFailure::Malformed)?)?;
        self.at += bytes;
        Ok(())
    }

    /// A text; one that is too long for a name is cut.
    fn text(&mut self, bytes: u64) -> Result<String, WalkFailure> {
        let mut text = vec![0; usize::try_from(bytes.min(MAX_NAME + 1)).unwrap_or_default()];
        self.file.read_exact(&mut text)?;
        self.at += text.len() as u64;
        self.skip(bytes - text.len() as u64)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The message of this kind that ends at `end`. `compiled` is that of the node it belongs to.
    fn message(
        &mut self,
        kind: MessageKind,
        end: u64,
        depth: usize,
        compiled: &mut CompiledNode,
    ) -> Result<(), WalkFailure> {
        if depth > MAX_DEPTH {
            return Err(WalkFailure::Refused(format!(
                "has more than {MAX_DEPTH} messages in each other"
            )));
        }
        let (mut values, mut of_node) = (MessageFields::default(), CompiledNode::default());
        while self.at < end {
            let (number, wire) = self.tag()?;
            match wire {
                0 if number == 3 => values.integer = self.varint()?,
                0 => drop(self.varint()?),
                1 => self.skip(8)?,
                2 => {
                    let bytes = self.varint()?;
                    if bytes > end.saturating_sub(self.at) {
                        return Err(WalkFailure::Malformed);
                    }
                    let inner = self.at + bytes;
                    match kind.field(number) {
                        Some(field) => self.message(field, inner, depth + 1, &mut of_node)?,
                        None if kind.is_text(number) => {
                            let text = self.text(bytes)?;
                            values.texts[number as usize] = text;
                        }
                        None => self.skip(bytes)?,
                    }
                }
                5 => self.skip(4)?,
                3 => self.skip_group(number, end, depth)?,
                _ => return Err(WalkFailure::Malformed),
            }
        }
        if self.at != end {
            return Err(WalkFailure::Malformed);
        }
        let MessageFields { texts: [_, first, second, _, fourth], integer } = values;
        match (kind, &*first) {
            (MessageKind::Entry, "location") => self.judge(&second),
            (MessageKind::Attribute, "ep_cache_context") => {
                compiled.name = fourth;
                Ok(())
            }
            (MessageKind::Attribute, "embed_mode") => {
                compiled.embedded = Some(integer);
                Ok(())
            }
            (MessageKind::Node, _) if fourth == "EPContext" && of_node.embedded == Some(0) => {
                self.judge(&of_node.name)
            }
            _ => Ok(()),
        }
    }

    fn judge(&self, name: &str) -> Result<(), WalkFailure> {
        if name.len() as u64 > MAX_NAME {
            let text = format!("names a file with more than {MAX_NAME} bytes");
            return Err(WalkFailure::Refused(text));
        }
        if name.starts_with(MEMORY_TAG) {
            let text = format!("refers to memory of the process: {name:?}");
            return Err(WalkFailure::Refused(text));
        }
        (self.judge)(name).map_err(WalkFailure::Refused)
    }
}

/// Refuses an ONNX model with names of files that lie elsewhere. `folder`, which was judged or is
/// the operator's, is searched for them in place of the model's own directory, if there is one.
///
/// # Errors
/// Names the model, its file and the other one. A malformed file is not an error: the library
/// refuses it.
pub fn check_external_data(
    model: &str,
    places: &FilePlaces,
    file: &Path,
    folder: Option<&Path>,
) -> Result<(), PluginFault> {
    let Ok(opened) = File::open(file) else { return Ok(()) };
    let end = opened.metadata().map_or(0, |found| found.len());
    let own = file.parent().unwrap_or(Path::new(""));
    let folder = folder.map(|folder| (folder, FilePlaces::new(folder, [])));
    let judge = |name: &str| {
        let mut found = places.resolve(own, name);
        if let Some((folder, below)) = &folder {
            let in_folder = below.resolve(folder, name).or_else(|_| places.resolve(folder, name));
            found = found.and(in_folder);
        }
        found.map(drop).map_err(|refusal| format!("names an external file: {refusal}"))
    };
    let mut walk = ModelWalk { file: BufReader::new(opened), at: 0, judge: &judge };
    match walk.message(MessageKind::Model, end, 0, &mut CompiledNode::default()) {
        Ok(()) | Err(WalkFailure::Malformed) => Ok(()),
        Err(WalkFailure::Refused(why)) => {
            let file = file.display();
            Err(PluginFault::invalid(format!(
                "unable to load model '{model}': the file {file} {why}"
            )))
        }
    }
}

#[cfg(test)]
#[path = "external_data_tests.rs"]
mod tests;
