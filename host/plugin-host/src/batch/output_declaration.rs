//! Checks an output of a backend against its declaration in the model configuration.

use trtserver_base::error::{Error, Result};
use trtserver_request::signature::dims_match;
use trtserver_request::tensor::element_count;
use trtserver_request::{DType, ModelSignature, Shape, ShapeText};

/// What a produced tensor is declared as: an output, an implicit state, or both.
pub struct OutputDeclaration {
    /// Index in the configuration, and the shape for the client.
    pub output: Option<(usize, Shape)>,
    /// Index of the state, and the shape for the model.
    pub state: Option<(usize, Shape)>,
    pub dtype: DType,
    /// The first dimension is the batch dimension.
    pub batched: bool,
    /// For an output of a batch that source inputs cut: its shape for the client of each request.
    pub cut: Option<Vec<Shape>>,
}

/// The batch size that a tensor must have.
#[derive(Clone, Copy)]
pub enum OutputRows {
    Request(u32),
    Batch(u32),
}

impl OutputDeclaration {
    /// Checks name, type, shape and size. Type and shape of a response are the backend's if its
    /// outputs are free.
    pub fn check(
        signature: &ModelSignature,
        name: &str,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
        rows: OutputRows,
    ) -> Result<Self> {
        let fault = |text: String| {
            Err(Error::internal(format!(
                "model '{}': the backend produced output '{name}' {text}",
                signature.model
            )))
        };
        let (output, state) = (signature.output(name), signature.state(name));
        let spec = output.map(|index| &signature.outputs[index]);
        let kept = state.map(|state| &signature.states[state]);
        let Some(declared) = spec.map(|s| s.dtype).or(kept.map(|s| s.dtype)) else {
            let names: Vec<&str> = signature.outputs.iter().map(|o| &*o.name).collect();
            return Err(Error::internal(format!(
                "model '{}': the backend produced output '{name}', which the model configuration does \
                 not declare (declared: {})",
                signature.model,
                names.join(", ")
            )));
        };
        let free = spec.filter(|s| matches!(rows, OutputRows::Request(_)) && signature.is_free(s));
        let sent = DType::from_number(dtype).filter(|_| free.is_some());
        let own = sent.unwrap_or(declared);
        if own.number() != dtype || kept.is_some_and(|s| s.dtype != own) {
            let got = DType::from_number(dtype).map_or("an unknown type", DType::config_name);
            return fault(format!(
                "with data type {got}, the model configuration specifies {}",
                kept.map_or(own, |s| s.dtype).config_name()
            ));
        }
        let batched = signature.batching() && spec.is_none_or(|s| !s.shape_tensor);
        let free_shape = free.is_some_and(|s| signature.has_free_shape(s));
        let caller_shape = match spec {
            Some(_) if free_shape => Some(shape.into()),
            Some(spec) => Some(signature.to_caller(spec, shape)?),
            None => None,
        };
        if free_shape && element_count(shape).is_none() {
            return fault(format!("with the impossible shape {}", ShapeText(shape)));
        }
        let (n, whose) = match rows {
            OutputRows::Request(n) => (n, "the batch size of the request"),
            OutputRows::Batch(n) => (n, "the number of rows of all requests of the batch"),
        };
        let first = caller_shape.as_deref().unwrap_or(shape).first();
        if batched && !free_shape && first != Some(&i64::from(n)) {
            return fault(format!(
                "with shape {}, expected a first dimension of {n}, {whose}",
                ShapeText(shape)
            ));
        }
        if let Some(kept) = kept
            && !dims_match(&kept.dims, &shape[usize::from(batched)..])
        {
            return fault(format!(
                "with shape {}, the model configuration specifies {} for each row of the state",
                ShapeText(shape),
                ShapeText(&kept.dims)
            ));
        }
        if let Some(size) = own.size() {
            let expected = element_count(shape).and_then(|n| n.checked_mul(size));
            if expected.map(|e| e as u64) != Some(bytes) {
                return fault(format!(
                    "of shape {} with {bytes} bytes, expected {}",
                    ShapeText(shape),
                    expected.unwrap_or(0)
                ));
            }
        }
        Ok(Self {
            output: output.zip(caller_shape),
            state: state.map(|state| (state, shape.into())),
            dtype: own,
            batched,
            cut: None,
        })
    }

    /// Checks output number `index` of a batch, which the source inputs of its requests cut. It has
    /// as many elements as all responses, in any shape.
    pub fn check_cut<'a>(
        signature: &ModelSignature,
        index: usize,
        dtype: u32,
        shape: &[i64],
        bytes: u64,
        sources: impl Iterator<Item = &'a [i64]>,
    ) -> Result<Self> {
        let spec = &signature.outputs[index];
        let fault = |text: String| {
            Err(Error::internal(format!(
                "model '{}': the backend produced output '{}' {text}",
                signature.model, spec.name
            )))
        };
        if spec.dtype.number() != dtype {
            let got = DType::from_number(dtype).map_or("an unknown type", DType::config_name);
            return fault(format!(
                "with data type {got}, the model configuration specifies {}",
                spec.dtype.config_name()
            ));
        }
        let declared = signature.full_dims(spec);
        let cut: Vec<Shape> = sources.map(|source| cut_shape(&declared, source)).collect();
        let expected: usize = cut.iter().map(|shape| element_count(shape).unwrap_or(0)).sum();
        let found = element_count(shape);
        let right_size =
            |size| found.and_then(|n| n.checked_mul(size)) == usize::try_from(bytes).ok();
        if found != Some(expected) || !spec.dtype.size().is_none_or(right_size) {
            return fault(format!(
                "of shape {} with {bytes} bytes, the shapes of the source inputs expect {expected} elements",
                ShapeText(shape)
            ));
        }
        let output = Some((index, declared));
        Ok(Self { output, state: None, dtype: spec.dtype, batched: true, cut: Some(cut) })
    }

    /// What the request at `position` of the batch, with this batch size, gets of it.
    pub fn for_request(&self, position: usize, rows: u32) -> Self {
        match (&self.output, self.cut.as_ref().and_then(|cut| cut.get(position))) {
            (Some((index, _)), Some(shape)) => Self {
                output: Some((*index, shape.clone())),
                state: None,
                dtype: self.dtype,
                batched: self.batched,
                cut: None,
            },
            _ => self.with_rows(rows),
        }
    }

    /// The same with another batch size.
    fn with_rows(&self, rows: u32) -> Self {
        let cut = |(number, shape): &(usize, Shape)| {
            let mut shape = shape.clone();
            if let Some(first) = shape.first_mut().filter(|_| self.batched) {
                *first = i64::from(rows);
            }
            (*number, shape)
        };
        Self {
            output: self.output.as_ref().map(cut),
            state: self.state.as_ref().map(cut),
            dtype: self.dtype,
            batched: self.batched,
            cut: None,
        }
    }

    /// Elements of one row; of the whole tensor without a batch dimension.
    pub fn row_elements(shape: &[i64], batched: bool) -> usize {
        element_count(&shape[usize::from(batched).min(shape.len())..]).unwrap_or(0)
    }
}

/// The shape of an output that a source input of that shape cuts: the input gives the variable
/// dimensions.
fn cut_shape(declared: &[i64], source: &[i64]) -> Shape {
    let dim = |(at, &dim): (usize, &i64)| match dim {
        -1 => source.get(at).copied().unwrap_or(1),
        fixed => fixed,
    };
    declared.iter().enumerate().map(dim).collect()
}
