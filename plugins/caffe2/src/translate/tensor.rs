//! Constant tensors: weights and what fill operators write.

use crate::onnx::TensorProto;

/// ONNX's numbers of element types.
pub mod element {
    pub const FLOAT: i32 = 1;
    pub const UINT8: i32 = 2;
    pub const INT8: i32 = 3;
    pub const UINT16: i32 = 4;
    pub const INT16: i32 = 5;
    pub const INT32: i32 = 6;
    pub const INT64: i32 = 7;
    pub const STRING: i32 = 8;
    pub const BOOL: i32 = 9;
    pub const FLOAT16: i32 = 10;
    pub const DOUBLE: i32 = 11;
}

/// Bytes of an element; 0 for strings.
pub fn element_size(element: i32) -> usize {
    match element {
        element::UINT8 | element::INT8 | element::BOOL => 1,
        element::UINT16 | element::INT16 | element::FLOAT16 => 2,
        element::FLOAT | element::INT32 => 4,
        element::INT64 | element::DOUBLE => 8,
        _ => 0,
    }
}

#[derive(Debug)]
pub struct ConstantTensor {
    pub element: i32,
    pub dims: Vec<i64>,
    pub data: ConstantContents,
}

#[derive(Debug)]
pub enum ConstantContents {
    /// All elements, little-endian.
    Bytes(Vec<u8>),
    /// One element that is repeated.
    Repeated(Vec<u8>),
    Strings(Vec<Vec<u8>>),
}

impl ConstantTensor {
    pub fn floats(dims: &[i64], values: &[f32]) -> Self {
        let data =
            ConstantContents::Bytes(values.iter().flat_map(|value| value.to_le_bytes()).collect());
        Self { element: element::FLOAT, dims: dims.to_vec(), data }
    }

    /// A vector of 64-bit integers, as shapes, axes and counts are.
    pub fn integers(values: &[i64]) -> Self {
        let data =
            ConstantContents::Bytes(values.iter().flat_map(|value| value.to_le_bytes()).collect());
        Self { element: element::INT64, dims: vec![values.len() as i64], data }
    }

    /// Number of elements; `None` beyond the address space, or with a negative dimension.
    pub fn count(&self) -> Option<usize> {
        let multiply = |n: usize, &dim: &i64| n.checked_mul(usize::try_from(dim).ok()?);
        self.dims.iter().try_fold(1, multiply)
    }

    /// Bytes in the model; `None` as for [`ConstantTensor::count`].
    pub fn bytes(&self) -> Option<usize> {
        match &self.data {
            ConstantContents::Strings(strings) => Some(strings.iter().map(|s| s.len() + 8).sum()),
            _ => self.count()?.checked_mul(element_size(self.element)),
        }
    }

    /// The elements of a short tensor of integers.
    pub fn as_integers(&self) -> Option<Vec<i64>> {
        let n = self.count().filter(|&n| n <= 1024)?;
        let width = element_size(self.element);
        let bytes = match &self.data {
            ConstantContents::Bytes(bytes) => bytes.clone(),
            ConstantContents::Repeated(one) => one.repeat(n),
            ConstantContents::Strings(_) => return None,
        };
        let read = |chunk: &[u8]| match self.element {
            element::INT32 => Some(i64::from(i32::from_le_bytes(chunk.try_into().ok()?))),
            element::INT64 => Some(i64::from_le_bytes(chunk.try_into().ok()?)),
            _ => None,
        };
        bytes.chunks(width.max(1)).map(read).collect()
    }

    /// The elements of a short tensor of floats.
    pub fn as_floats(&self) -> Option<Vec<f32>> {
        let n = self.count().filter(|&n| n <= 1024 && self.element == element::FLOAT)?;
        let bytes = match &self.data {
            ConstantContents::Bytes(bytes) => bytes.clone(),
            ConstantContents::Repeated(one) => one.repeat(n),
            ConstantContents::Strings(_) => return None,
        };
        bytes.chunks(4).map(|chunk| Some(f32::from_le_bytes(chunk.try_into().ok()?))).collect()
    }

    /// The initialiser. The caller has checked the size.
    pub fn into_proto(self, name: String) -> TensorProto {
        let count = self.count().unwrap_or(0);
        let (raw_data, string_data) = match self.data {
            ConstantContents::Bytes(bytes) => (bytes, Vec::new()),
            ConstantContents::Repeated(one) => (one.repeat(count), Vec::new()),
            ConstantContents::Strings(strings) => (Vec::new(), strings),
        };
        TensorProto { dims: self.dims, data_type: self.element, string_data, name, raw_data }
    }
}
