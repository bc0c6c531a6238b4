//! `addsub_fp32` in ONNX Runtime alone: every result is checked.

use crate::Result;
use crate::onnx::BareModel;
use std::path::Path;

const VALUES: usize = 16;

pub struct AddSub(BareModel);

impl AddSub {
    pub fn open(library: &Path, model: &Path) -> Result<Self> {
        let numbers = |step: f32| (0..VALUES).map(|i| i as f32 * step).collect();
        let inputs = [("INPUT0", numbers(1.0)), ("INPUT1", numbers(0.5))];
        let outputs = [("OUTPUT0", VALUES), ("OUTPUT1", VALUES)];
        BareModel::open(library, model, &inputs, &outputs).map(Self)
    }

    /// One run; the result is checked.
    pub fn call(&mut self) -> Result<()> {
        self.0.run()?;
        let read = |tensor, i| self.0.value(tensor, i);
        let right =
            |i| read(2, i) == read(0, i) + read(1, i) && read(3, i) == read(0, i) - read(1, i);
        if (0..VALUES).all(right) { Ok(()) } else { Err("ONNX Runtime gave a wrong sum".into()) }
    }
}
