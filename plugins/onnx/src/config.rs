//! What the plugin needs of a model's configuration, apart from the host's views of it.
//!
//! Most comes ready-made in the model descriptor. The rest (schedulers, tensors that the host adds by
//! itself, accelerators) is read from the serialized `ModelConfig`, whose field numbers never change,
//! by walking over it: a protobuf library would be most of the plugin's size.

/// One declared tensor.
#[derive(Debug, Clone, Default)]
pub struct Decl {
    pub name: String,
    /// One of the interface's types.
    pub dtype: u32,
    /// What callers see, without the batch dimension.
    pub dims: Vec<i64>,
    /// What the model sees.
    pub model_dims: Vec<i64>,
    pub optional: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Config {
    pub model: String,
    /// 0 = the model does not batch.
    pub max_batch_size: usize,
    pub inputs: Vec<Decl>,
    pub outputs: Vec<Decl>,
    pub facts: Facts,
}

/// See the module text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    pub has_scheduler: bool,
    /// Inputs that the host makes: sequence controls, states, batch inputs.
    pub host_inputs: Vec<String>,
    /// Outputs that the host keeps: states.
    pub host_outputs: Vec<String>,
    /// Names of requested execution accelerators.
    pub accelerators: Vec<String>,
}

impl Facts {
    /// Reads a serialized `ModelConfig`. Malformed bytes end the reading: the host has parsed them before.
    pub fn read(config: &[u8]) -> Self {
        let mut facts = Facts::default();
        for (field, value) in Fields(config) {
            match (field, value) {
                (11 | 15, _) => facts.has_scheduler = true,
                (13, Field::Bytes(sequence)) => facts.read_sequence(sequence),
                (12, Field::Bytes(optimization)) => facts.read_optimization(optimization),
                // batch_input.target_name
                (20, Field::Bytes(batch_input)) => facts.host_inputs.extend(texts(batch_input, 2)),
                _ => {}
            }
        }
        facts
    }

    fn read_sequence(&mut self, sequence: &[u8]) {
        self.has_scheduler = true;
        for (field, value) in Fields(sequence) {
            match (field, value) {
                (2, Field::Bytes(control)) => self.host_inputs.extend(texts(control, 1)),
                (5, Field::Bytes(state)) => {
                    self.host_inputs.extend(texts(state, 1));
                    self.host_outputs.extend(texts(state, 2));
                }
                _ => {}
            }
        }
    }

    fn read_optimization(&mut self, optimization: &[u8]) {
        for (field, value) in Fields(optimization) {
            let (4, Field::Bytes(accelerators)) = (field, value) else { continue };
            for (_, value) in Fields(accelerators) {
                if let Field::Bytes(one) = value {
                    self.accelerators.extend(texts(one, 1));
                }
            }
        }
    }
}

/// All values of a text field.
fn texts(message: &[u8], wanted: u64) -> Vec<String> {
    let of = |(field, value)| match value {
        Field::Bytes(text) if field == wanted => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    };
    Fields(message).filter_map(of).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Field<'a> {
    /// A number of any kind: none matters here.
    Number,
    Bytes(&'a [u8]),
}

/// The fields of a serialized message, in order; ends at the first byte that makes no sense.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Field<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => self.varint().map(|_| Field::Number)?,
            1 => self.take(8).map(|_| Field::Number)?,
            5 => self.take(4).map(|_| Field::Number)?,
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for at in 0..10 {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
