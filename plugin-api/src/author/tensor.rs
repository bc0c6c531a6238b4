//! Inputs: read-only views of tensors that the host owns.

use super::dtype::{Dtype, Element, elements};
use super::error::Error;
use super::host::{as_bytes, as_slice, as_text};
use crate::abi;
use crate::abi::types::{Buf, memory_type, tensor_flags};

/// One input of a request. `Copy`: a pointer. It cannot outlive `execute`.
#[derive(Clone, Copy)]
pub struct Tensor<'a>(&'a abi::types::Tensor);

impl<'a> Tensor<'a> {
    /// # Safety
    /// The tensor and everything behind it stay valid and unchanged for `'a`.
    pub(crate) unsafe fn new(raw: &'a abi::types::Tensor) -> Tensor<'a> {
        Tensor(raw)
    }

    /// As clients and the configuration call it.
    pub fn name(self) -> &'a str {
        // SAFETY: by the promise of `new`.
        unsafe { as_text(self.0.name) }
    }

    /// Position in the model configuration's input list.
    pub fn index(self) -> Option<usize> {
        (self.0.index != u32::MAX).then_some(self.0.index as usize)
    }

    /// Type of the elements.
    pub fn dtype(self) -> Dtype {
        Dtype::from_abi(self.0.dtype)
    }

    /// With the batch dimension first when the model batches.
    pub fn shape(self) -> &'a [i64] {
        // SAFETY: by the promise of `new`.
        unsafe { as_slice(self.0.shape, self.0.rank.into()) }
    }

    /// Product of the shape.
    pub fn elements(self) -> usize {
        elements(self.shape()).unwrap_or(0)
    }

    /// Sum of the parts' sizes.
    pub fn byte_size(self) -> usize {
        self.0.bytes as usize
    }

    /// A sequence control (START, READY, …) added by the host.
    pub fn is_control(self) -> bool {
        self.0.flags & tensor_flags::CONTROL != 0
    }

    /// State that the host stores for a sequence.
    pub fn is_state(self) -> bool {
        self.0.flags & tensor_flags::STATE != 0
    }

    /// Shapes may differ within the batch: [`super::Batch::gather`] returns the elements of all
    /// requests, flat.
    pub fn is_ragged(self) -> bool {
        self.0.flags & tensor_flags::RAGGED != 0
    }

    /// A batch input, which describes the requests of the batch.
    pub fn is_batch_input(self) -> bool {
        self.0.flags & tensor_flags::BATCH != 0
    }

    /// The parts as the host stores them, for passing pointers to another library.
    pub fn raw_parts(self) -> &'a [Buf] {
        // SAFETY: by the promise of `new`.
        unsafe { as_slice(self.0.parts, self.0.n_parts.into()) }
    }

    /// The bytes, part by part. A part in GPU memory is empty; only backends that declare that
    /// memory type receive one.
    pub fn parts(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.raw_parts().iter().map(|part| {
            if !readable(part) {
                return &[][..];
            }
            // SAFETY: memory that this process can read, valid for `'a` by the promise of `new`.
            unsafe { as_bytes(part.ptr, part.bytes) }
        })
    }

    /// All bytes, if they are in one readable part.
    pub fn contiguous(self) -> Option<&'a [u8]> {
        match self.raw_parts() {
            [] => (self.0.bytes == 0).then_some(&[]),
            [one] if readable(one) => self.parts().next(),
            _ => None,
        }
    }

    /// The elements in place, without a copy. Fails if `T` is not the tensor's type, or if the
    /// bytes are in several parts or unaligned (set [`super::BackendInfo::align`] to prevent that);
    /// [`Tensor::to_vec`] always works.
    pub fn as_slice<T: Element>(self) -> Result<&'a [T], Error> {
        self.check::<T>()?;
        let bytes = self.contiguous().ok_or_else(|| {
            Error::unsupported(format_args!(
                "input '{}' is in {} parts",
                self.name(),
                self.raw_parts().len()
            ))
        })?;
        // SAFETY: every bit pattern is a value of `T`, which is what `Element` says.
        let (before, middle, after) = unsafe { bytes.align_to::<T>() };
        if before.is_empty() && after.is_empty() {
            return Ok(middle);
        }
        Err(Error::internal(format_args!(
            "input '{}': {} bytes are not aligned elements of {}",
            self.name(),
            bytes.len(),
            T::DTYPE
        )))
    }

    /// A copy of the elements.
    pub fn to_vec<T: Element>(self) -> Result<Vec<T>, Error> {
        self.check::<T>()?;
        let size = size_of::<T>();
        let total: usize = self.parts().map(<[u8]>::len).sum();
        if total != self.byte_size() || !total.is_multiple_of(size) {
            return Err(Error::internal(format_args!(
                "input '{}': {total} readable bytes of {} are not elements of {}",
                self.name(),
                self.byte_size(),
                T::DTYPE
            )));
        }
        let mut all = Vec::<T>::with_capacity(total / size);
        let mut to = all.as_mut_ptr().cast::<u8>();
        for part in self.parts() {
            // SAFETY: the capacity holds the sum of all parts, and every bit pattern is a value of
            // `T`.
            unsafe {
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
        }
        // SAFETY: all of these bytes were just written.
        unsafe { all.set_len(total / size) };
        Ok(all)
    }

    /// A copy of all bytes; works for every type.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.byte_size());
        self.parts().for_each(|part| all.extend_from_slice(part));
        all
    }

    /// The elements of a STRING tensor. An element that is truncated, or split over two parts, is
    /// an error and ends the iteration; for the latter use [`strings_in`] over
    /// [`Tensor::to_bytes`].
    pub fn strings(self) -> impl Iterator<Item = Result<&'a [u8], Error>> {
        let wrong = (self.dtype() != Dtype::String).then(|| Err(self.mismatch("STRING")));
        let parts = if wrong.is_none() { self.parts().len() } else { 0 };
        wrong.into_iter().chain(self.parts().take(parts).flat_map(strings_in))
    }

    fn check<T: Element>(self) -> Result<(), Error> {
        if T::reads(self.dtype()) { Ok(()) } else { Err(self.mismatch(T::DTYPE.name())) }
    }

    fn mismatch(self, expected: &str) -> Error {
        Error::invalid(format_args!("input '{}' is {}, not {expected}", self.name(), self.dtype()))
    }
}

/// Elements of STRING data: each is a little-endian u32 byte count and that many bytes.
pub fn strings_in(bytes: &[u8]) -> Strings<'_> {
    Strings { rest: bytes }
}

/// See [`strings_in`].
#[derive(Clone)]
pub struct Strings<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Strings<'a> {
    type Item = Result<&'a [u8], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return None;
        }
        let element = rest
            .split_first_chunk::<4>()
            .and_then(|(head, tail)| tail.split_at_checked(u32::from_le_bytes(*head) as usize));
        match element {
            Some((element, tail)) => {
                self.rest = tail;
                Some(Ok(element))
            }
            None => Some(Err(Error::invalid("a STRING element extends past the end of its data"))),
        }
    }
}

fn readable(part: &Buf) -> bool {
    part.memory.memory_type != memory_type::GPU
}
