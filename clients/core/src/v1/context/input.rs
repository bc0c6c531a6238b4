//! An input of a context: its shape and the data of each batch entry, with the checks of the
//! original library.

use crate::borrow::Borrow;
use crate::error::{Error, Result};
use crate::tensor::encode_strings;
use bytes::Bytes;
use trtserver_proto::v2::{DataType, ModelInput};

/// An input tensor that is being filled in.
#[derive(Clone, Debug)]
pub struct Input {
    config: ModelInput,
    /// Bytes of one batch entry; -1 while the shape is not known, and for strings.
    byte_size: i64,
    needs_shape: bool,
    shape: Vec<i64>,
    pub(super) batch_size: u64,
    contents: InputContents,
    total_byte_size: u64,
}

#[derive(Clone, Debug)]
enum InputContents {
    /// One slice for each batch entry.
    Raw(Vec<Slice>),
    SharedMemory {
        region: String,
        offset: u64,
    },
}

#[derive(Clone, Debug)]
enum Slice {
    Owned(Bytes),
    /// Memory of the caller, by the contract of [`Input::set_borrowed`].
    Borrowed(*const u8, usize),
}

// SAFETY: borrowed memory is only read, and valid by the contract of `Input::set_borrowed`.
unsafe impl Send for Slice {}
// SAFETY: threads only read borrowed memory, which the caller of `Input::set_borrowed` keeps valid.
unsafe impl Sync for Slice {}

/// Bytes of one element; `None` for strings.
pub(super) fn element_size(data_type: DataType) -> Option<i64> {
    Some(match data_type {
        DataType::TypeBool | DataType::TypeUint8 | DataType::TypeInt8 => 1,
        DataType::TypeUint16 | DataType::TypeInt16 | DataType::TypeFp16 | DataType::TypeBf16 => 2,
        DataType::TypeUint32 | DataType::TypeInt32 | DataType::TypeFp32 => 4,
        DataType::TypeUint64 | DataType::TypeInt64 | DataType::TypeFp64 => 8,
        DataType::TypeString | DataType::TypeInvalid => return None,
    })
}

/// Elements of these dimensions: -1 if one of them is variable. No dimensions count as no elements.
pub(super) fn element_count(dims: &[i64]) -> i64 {
    if dims.is_empty() {
        return 0;
    }
    if dims.iter().any(|dim| *dim < 0) {
        return -1;
    }
    dims.iter().fold(1_i64, |count, dim| count.saturating_mul(*dim))
}

fn byte_size(data_type: DataType, dims: &[i64]) -> i64 {
    match (element_size(data_type), element_count(dims)) {
        (None, _) | (_, -1) => -1,
        (Some(size), count) => count.saturating_mul(size),
    }
}

impl Input {
    pub(super) fn new(config: ModelInput, batch_size: u64) -> Self {
        Self {
            byte_size: byte_size(config.data_type(), &config.dims),
            needs_shape: element_count(&config.dims) == -1,
            config,
            shape: Vec::new(),
            batch_size,
            contents: InputContents::Raw(Vec::new()),
            total_byte_size: 0,
        }
    }

    /// Name, type, format and dimensions, as the model's configuration has them.
    #[must_use]
    pub fn config(&self) -> &ModelInput {
        &self.config
    }

    /// Name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Bytes of one batch entry; -1 while the shape is not known, and for strings.
    #[must_use]
    pub fn byte_size(&self) -> i64 {
        self.byte_size
    }

    /// Bytes given since the last reset, or of the shared memory.
    #[must_use]
    pub fn total_byte_size(&self) -> u64 {
        self.total_byte_size
    }

    /// The shape that was set; empty otherwise.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The shape that is sent: what was set, otherwise the configuration's.
    pub(super) fn dims(&self) -> &[i64] {
        if self.shape.is_empty() { &self.config.dims } else { &self.shape }
    }

    /// Sets the shape of a variable-size input, without the batch.
    pub fn set_shape(&mut self, dims: &[i64]) -> Result<()> {
        if let Some(dim) = dims.iter().find(|dim| **dim < 0) {
            // The original has no quote at the end.
            return Err(Error::invalid(format!(
                "attempt to set invalid shape dimension {dim}, shape dimensions must be >= 0 for input '{}",
                self.name()
            )));
        }
        self.needs_shape = false;
        self.shape = dims.to_vec();
        self.byte_size = byte_size(self.config.data_type(), dims);
        Ok(())
    }

    /// Forgets the data, not the shape.
    pub fn reset(&mut self) {
        self.contents = InputContents::Raw(Vec::new());
        self.total_byte_size = 0;
    }

    /// Adds the data of the next batch entry.
    pub fn set_raw(&mut self, data: impl Into<Bytes>) -> Result<()> {
        let data = data.into();
        let len = data.len();
        self.add(Slice::Owned(data), len)
    }

    /// As [`set_raw`](Self::set_raw), without taking or copying the data.
    ///
    /// # Safety
    /// `data` points to `len` bytes that stay valid and unchanged until this input is reset or
    /// dropped, and every run that was prepared before has completed.
    pub unsafe fn set_borrowed(&mut self, data: *const u8, len: usize) -> Result<()> {
        self.add(Slice::Borrowed(data, len), len)
    }

    /// Copies what is borrowed.
    ///
    /// # Safety
    /// The borrowed memory is still valid.
    pub unsafe fn copy_borrowed(&mut self) {
        let InputContents::Raw(slices) = &mut self.contents else { return };
        for slice in slices {
            if let Slice::Borrowed(data, len) = *slice {
                let bytes = match len {
                    0 => Bytes::new(),
                    // SAFETY: the contract of this function.
                    _ => Bytes::copy_from_slice(unsafe { std::slice::from_raw_parts(data, len) }),
                };
                *slice = Slice::Owned(bytes);
            }
        }
    }

    fn add(&mut self, slice: Slice, len: usize) -> Result<()> {
        let name = &self.config.name;
        let InputContents::Raw(slices) = &mut self.contents else {
            return Err(Error::invalid(format!(
                "The input '{name}' has already been set with SetSharedMemory"
            )));
        };
        let problem = if self.needs_shape {
            format!("must set shape for variable-size input '{name}' before setting input data")
        } else if element_size(self.config.data_type()).is_some() && len as i64 != self.byte_size {
            let expected = self.byte_size;
            format!("invalid size {len} bytes for input '{name}', expects {expected} bytes")
        } else if slices.len() as u64 >= self.batch_size {
            let batch_size = self.batch_size;
            format!(
                "expecting {batch_size} invocations of SetRaw for input '{name}', one per batch entry"
            )
        } else {
            slices.push(slice);
            self.total_byte_size += len as u64;
            return Ok(());
        };
        slices.clear();
        self.total_byte_size = 0;
        Err(Error::invalid(problem))
    }

    /// Adds the strings of the next batch entry.
    pub fn set_strings<S: AsRef<[u8]>>(&mut self, strings: &[S]) -> Result<()> {
        let name = self.name();
        if self.config.data_type() != DataType::TypeString {
            let text = format!("non-string tensor '{name}' cannot be set from string data");
            self.reset();
            return Err(Error::invalid(text));
        }
        if self.needs_shape {
            return Err(Error::invalid(format!(
                "must set shape for variable-size input '{name}' before setting input data"
            )));
        }
        let expected = element_count(self.dims());
        if strings.len() as i64 != expected {
            let found = strings.len();
            let text = format!("expecting {expected} strings for input '{name}', got {found}");
            self.reset();
            return Err(Error::invalid(text));
        }
        self.set_raw(encode_strings(strings))
    }

    /// Takes the data of the whole batch from a registered region.
    pub fn set_shared_memory(&mut self, region: &str, offset: u64, byte_size: u64) -> Result<()> {
        let name = &self.config.name;
        match &self.contents {
            InputContents::Raw(slices) if !slices.is_empty() => {
                return Err(Error::invalid(format!(
                    "The input '{name}' has already been set with SetRaw"
                )));
            }
            InputContents::Raw(_) => {}
            InputContents::SharedMemory { .. } => {
                return Err(Error::invalid(format!(
                    "The input '{name}' can only be set once with SetSharedMemory"
                )));
            }
        }
        if let Ok(one) = u64::try_from(self.byte_size) {
            let batch_size = self.batch_size;
            let expected = batch_size.saturating_mul(one);
            if byte_size != expected {
                return Err(Error::invalid(format!(
                    "The input '{name}' has shared memory of size {byte_size} bytes while the expected size is \
                     {batch_size} * {one} = {expected} bytes"
                )));
            }
        }
        self.contents = InputContents::SharedMemory { region: region.to_owned(), offset };
        self.total_byte_size = byte_size;
        Ok(())
    }

    pub(super) fn shared_memory(&self) -> Option<(&str, u64)> {
        match &self.contents {
            InputContents::Raw(_) => None,
            InputContents::SharedMemory { region, offset } => Some((region, *offset)),
        }
    }

    /// The slices to send; `None` if they are in shared memory.
    pub(super) fn slices(&self, borrow: &Borrow) -> Result<Option<Vec<Bytes>>> {
        let InputContents::Raw(slices) = &self.contents else { return Ok(None) };
        if slices.len() as u64 != self.batch_size {
            return Err(Error::invalid(format!(
                "expecting {} invocations of SetRaw for input '{}', have {}",
                self.batch_size,
                self.name(),
                slices.len()
            )));
        }
        let bytes = slices.iter().map(|slice| match slice {
            Slice::Owned(bytes) => bytes.clone(),
            // SAFETY: the contract of `set_borrowed`; a run completes only after the borrow was
            // released.
            Slice::Borrowed(data, len) => unsafe { borrow.bytes(*data, *len) },
        });
        Ok(Some(bytes.collect()))
    }
}
