//! Golden cases: nets with the inputs and outputs that Caffe2 computed, written by
//! `tests/data/make_golden.py`.

use crate::netdef::{Argument, NetDef, OperatorDef, read_net};
use prost::Message;
use std::path::Path;
use trtserver_plugin_testkit::TensorSpec;

/// A file: the cases of one operator, or one network.
#[derive(Clone, PartialEq, Message)]
struct Cases {
    #[prost(message, repeated, tag = "1")]
    cases: Vec<Case>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Case {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub init: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub predict: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    pub inputs: Vec<Tensor>,
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<Tensor>,
    #[prost(message, repeated, tag = "6")]
    weights: Vec<Weight>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    #[prost(string, tag = "1")]
    pub name: String,
    /// One of the interface's types.
    #[prost(uint32, tag = "2")]
    pub dtype: u32,
    #[prost(int64, repeated, packed = "false", tag = "3")]
    pub dims: Vec<i64>,
    #[prost(bytes = "vec", tag = "4")]
    pub data: Vec<u8>,
}

/// A weight that the test makes: [`uniform`] numbers, scaled and moved.
#[derive(Clone, PartialEq, Message)]
struct Weight {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, repeated, packed = "false", tag = "2")]
    dims: Vec<i64>,
    #[prost(uint64, tag = "3")]
    seed: u64,
    #[prost(float, tag = "4")]
    scale: f32,
    #[prost(float, tag = "5")]
    offset: f32,
}

/// The same numbers as `lcg` in `make_golden.py`.
fn uniform(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 40) as f32 - (1 << 23) as f32) / (1 << 23) as f32
    })
}

impl Weight {
    fn fill(&self) -> OperatorDef {
        let n = self.dims.iter().product::<i64>() as usize;
        let values = uniform(self.seed).take(n).map(|value| value * self.scale + self.offset);
        let argument = |name: &str| Argument { name: Some(name.into()), ..Argument::default() };
        OperatorDef {
            r#type: Some("GivenTensorFill".into()),
            output: vec![self.name.clone()],
            arg: vec![
                Argument { ints: self.dims.clone(), ..argument("shape") },
                Argument { floats: values.collect(), ..argument("values") },
            ],
            ..OperatorDef::default()
        }
    }
}

impl Case {
    /// Both nets, with the weights that the test makes.
    pub fn nets(&self) -> (NetDef, NetDef) {
        let mut init = read_net(&self.init).unwrap();
        init.op.extend(self.weights.iter().map(Weight::fill));
        (init, read_net(&self.predict).unwrap())
    }
}

impl Tensor {
    /// The tensor in a model's configuration; without sizes if `variable`.
    pub fn spec(&self, variable: bool) -> TensorSpec {
        let dims: Vec<i64> = self.dims.iter().map(|&dim| if variable { -1 } else { dim }).collect();
        // A configuration has one dimension at least: a scalar is one element.
        TensorSpec::new(&self.name, self.dtype, if dims.is_empty() { &[1] } else { &dims })
    }
}

/// All cases by their files' names.
pub fn all() -> Vec<(String, Vec<Case>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden");
    let mut files: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let read = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, Cases::decode(&*std::fs::read(path).unwrap()).unwrap().cases)
    };
    files.iter().map(|path| read(path)).collect()
}
