//! Random requests to each model with the expected outputs.

use super::random::Random;
use bytes::Bytes;

/// Models without sequences.
pub const STATELESS: &[Model] =
    &[Model::Echo, Model::AddSub, Model::AddSubDynamic, Model::Sum, Model::Ranked];
/// Sequence models: running sums.
pub const SEQUENCES: &[Model] = &[Model::Direct, Model::Oldest, Model::State];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Echo,
    AddSub,
    AddSubDynamic,
    Sum,
    Ranked,
    Direct,
    Oldest,
    State,
}

impl Model {
    pub fn name(self) -> &'static str {
        match self {
            Model::Echo => "echo",
            Model::AddSub => "addsub_int32",
            Model::AddSubDynamic => "addsub_fp32_dynamic",
            Model::Sum => "sum_fp32",
            Model::Ranked => "ranked",
            Model::Direct => "direct",
            Model::Oldest => "oldest",
            Model::State => "state_direct",
        }
    }

    /// Input and output of a sequence model.
    fn step_names(self) -> (&'static str, &'static str) {
        if self == Model::State { ("INPUT", "OUTPUT") } else { ("INPUT0", "OUTPUT0") }
    }
}

/// Rows of four-byte values.
pub struct Tensor {
    pub name: &'static str,
    pub datatype: &'static str,
    pub length: usize,
    pub bytes: Bytes,
}

#[derive(Default)]
pub struct SoakRequest {
    pub model: &'static str,
    pub rows: usize,
    pub inputs: Vec<Tensor>,
    /// Names and expected bytes of the outputs.
    pub outputs: Vec<(&'static str, Bytes)>,
    pub priority: u32,
    pub sequence: u64,
    pub start: bool,
    pub end: bool,
}

impl SoakRequest {
    /// A random request to a stateless model.
    pub fn any(model: Model, random: &mut Random) -> SoakRequest {
        let rows = 1 + random.below(3) as usize;
        let length = match model {
            Model::AddSub | Model::AddSubDynamic => 16,
            Model::Sum => [1, 4, 9][random.below(3) as usize],
            _ => 1 + random.below(40) as usize,
        };
        let mut values = || -> Vec<i32> { (0..rows * length).map(|_| random.value()).collect() };
        let (a, b) = (values(), values());
        let both = |f: fn(i32, i32) -> i32| -> Vec<i32> {
            a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect()
        };
        let encode = if model == Model::AddSub { ints } else { floats };
        let datatype = if model == Model::AddSub { "INT32" } else { "FP32" };
        let tensor =
            |name, values: &[i32]| Tensor { name, datatype, length, bytes: encode(values) };
        let mut request = SoakRequest {
            model: model.name(),
            rows,
            inputs: vec![tensor("INPUT0", &a)],
            ..Self::default()
        };
        match model {
            Model::Sum => {
                let sums: Vec<i32> = a.chunks(length).map(|row| row.iter().sum()).collect();
                request.outputs = vec![("OUTPUT0", encode(&sums))];
            }
            Model::AddSub | Model::AddSubDynamic => {
                request.inputs.push(tensor("INPUT1", &b));
                request.outputs = vec![
                    ("OUTPUT0", encode(&both(|a, b| a + b))),
                    ("OUTPUT1", encode(&both(|a, b| a - b))),
                ];
            }
            Model::Ranked => {
                request.inputs.push(tensor("INPUT1", &b));
                request.outputs = vec![("OUTPUT0", encode(&a)), ("OUTPUT1", encode(&b))];
                request.priority = random.below(6) as u32;
            }
            _ => request.outputs = vec![("OUTPUT0", encode(&a))],
        }
        request
    }

    /// A request of a sequence; the expected output is `sum`.
    pub fn step(
        model: Model,
        sequence: u64,
        value: i32,
        sum: i32,
        flags: (bool, bool),
    ) -> SoakRequest {
        let (input, output) = model.step_names();
        let bytes = ints(&[value]);
        SoakRequest {
            model: model.name(),
            rows: 1,
            inputs: vec![Tensor { name: input, datatype: "INT32", length: 1, bytes }],
            outputs: vec![(output, ints(&[sum]))],
            priority: 0,
            sequence,
            start: flags.0,
            end: flags.1,
        }
    }

    /// Compares an output with the expected bytes.
    pub fn check(&self, name: &str, got: &[u8]) -> Result<(), String> {
        let expected = self.outputs.iter().find(|(n, _)| *n == name);
        let (_, expected) = expected.ok_or_else(|| format!("output {name} was not requested"))?;
        if got == expected {
            return Ok(());
        }
        Err(format!("{}: output {name} is {got:02x?}, expected {:02x?}", self.model, &expected[..]))
    }
}

fn ints(values: &[i32]) -> Bytes {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(values: &[i32]) -> Bytes {
    values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect()
}
