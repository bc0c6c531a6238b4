//! Models as text. A tensor with `cpu` is read or written by the CPU, also in a session on a GPU:
//!
//! ```text
//! fake onnx
//! weights 4096                                     bytes of device memory
//! input A FP32 -1 4
//! input B FP32 -1 4
//! input N INT64 -1 1 cpu
//! output SUM FP32 -1 4 = add A B
//! output SAME FP32 -1 4 = pass A                   the input itself
//! output COPY INT64 -1 1 cpu = copy N
//! output NEXT FP32 -1 4 = roll A                   each row is the next one of A, the last the first
//! ```

#[derive(Clone, Debug)]
pub struct Declared {
    pub name: String,
    pub element: i32,
    pub dims: Vec<i64>,
    pub cpu: bool,
}

#[derive(Clone, Debug)]
pub enum Operation {
    Add(String, String),
    Pass(String),
    Copy(String),
    Roll(String),
}

#[derive(Debug, Default)]
pub struct Model {
    pub weights: usize,
    pub inputs: Vec<Declared>,
    pub outputs: Vec<(Declared, Operation)>,
}

impl Model {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        if lines.next() != Some("fake onnx") {
            return Err("Protobuf parsing failed: no model of the fake".to_owned());
        }
        let mut model = Self::default();
        for line in lines {
            let bad = || format!("a line of the fake's model: {line}");
            let (left, right) = line.split_once('=').unwrap_or((line, ""));
            let words: Vec<&str> = left.split_whitespace().collect();
            let operation: Vec<&str> = right.split_whitespace().collect();
            match (&words[..], &operation[..]) {
                (["weights", bytes], []) => model.weights = bytes.parse().map_err(|_| bad())?,
                (["input", rest @ ..], []) => model.inputs.push(declared(rest).ok_or_else(bad)?),
                (["output", rest @ ..], operation) => {
                    let operation = match operation {
                        ["add", a, b] => Operation::Add((*a).to_owned(), (*b).to_owned()),
                        ["pass", a] => Operation::Pass((*a).to_owned()),
                        ["copy", a] => Operation::Copy((*a).to_owned()),
                        ["roll", a] => Operation::Roll((*a).to_owned()),
                        _ => return Err(bad()),
                    };
                    model.outputs.push((declared(rest).ok_or_else(bad)?, operation));
                }
                _ => return Err(bad()),
            }
        }
        Ok(model)
    }
}

fn declared(words: &[&str]) -> Option<Declared> {
    let [name, kind, dims @ ..] = words else { return None };
    let element = match *kind {
        "FP32" => 1,
        "INT64" => 7,
        _ => return None,
    };
    let (dims, cpu) = match dims {
        [dims @ .., "cpu"] => (dims, true),
        dims => (dims, false),
    };
    let dims: Option<Vec<i64>> = dims.iter().map(|dim| dim.parse().ok()).collect();
    Some(Declared { name: (*name).to_owned(), element, dims: dims?, cpu })
}
