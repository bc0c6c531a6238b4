//! A batch as one: inputs of all calls in one block, outputs written once and cut up by the host.

use super::call::Batch;
use super::dtype::{Dtype, Element};
use super::error::Error;
use super::host::with_str;
use super::response::{as_elements, buf, byte_size, drop_box};
use crate::abi::host::{Release, gather_mode};
use crate::abi::types::{Buf, Place};
use std::ptr;

/// An input over all calls of a batch, read-only. See [`Batch::gather`].
#[derive(Clone)]
pub struct GatheredTensor<'a> {
    name: &'a str,
    dtype: Dtype,
    shape: Vec<i64>,
    bytes: &'a [u8],
}

impl<'a> GatheredTensor<'a> {
    pub fn name(&self) -> &'a str {
        self.name
    }

    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// That of the calls, with the rows of all of them first when the model batches.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements in place. Fails if `T` is another type than the tensor's, or if the bytes lie
    /// unaligned (declare `align` to rule that out).
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T], Error> {
        // SAFETY: every bit pattern is a value of `T`, which is what `Element` says.
        let (before, middle, after) = unsafe { self.bytes.align_to::<T>() };
        if T::reads(self.dtype) && before.is_empty() && after.is_empty() {
            return Ok(middle);
        }
        Err(Error::invalid(format_args!(
            "input '{}': {} bytes of {} cannot be read as {}",
            self.name,
            self.bytes.len(),
            self.dtype,
            T::DTYPE
        )))
    }
}

/// # All calls at once
///
/// A model that computes a batch in one go gathers its inputs and scatters its outputs; nothing is
/// copied but where inputs of several calls have to be brought together. What was scattered is sent
/// when `execute` returns: each call that has no answer by then gets its rows of the outputs that it
/// wants. A call that was failed, answered or detached gets none of them, an error from `execute` goes
/// to all calls without an answer.
impl<'a> Batch<'a> {
    /// Whether this host can gather and scatter.
    pub fn can_merge(&self) -> bool {
        self.host.gather.is_some()
            && self.host.scatter_alloc.is_some()
            && self.host.scatter_adopt.is_some()
    }

    /// The input in place `position` of [`super::Call::inputs`] over all calls: their rows one after
    /// another (strings likewise). Calls of a batch have the same inputs in the same places. Fails when
    /// their shapes differ beyond the batch dimension.
    pub fn gather(&self, position: usize) -> Result<GatheredTensor<'a>, Error> {
        let gather = self.host.gather.ok_or_else(|| too_old("gather inputs"))?;
        let mut block = buf(ptr::null_mut(), 0);
        let input = u32::try_from(position).unwrap_or(u32::MAX);
        // SAFETY: the batch is being executed; what the host returns is ours.
        unsafe {
            let (mode, stream) = (gather_mode::ROWS, ptr::null_mut());
            let error = gather(self.raw, input, Place::CPU, mode, stream, &raw mut block);
            Error::take(self.host, error)?;
        }
        let of = |call: super::Call<'a>| call.inputs().nth(position);
        let first = self.calls().next().and_then(of);
        let first = first.ok_or_else(|| Error::internal("the host gathered nothing"))?;
        let mut shape = first.shape().to_vec();
        if self.len() > 1
            && let Some(rows) = shape.first_mut()
        {
            *rows = self.rows() as i64;
        }
        let bytes = if block.ptr.is_null() || block.bytes == 0 {
            &[]
        } else {
            // SAFETY: the host's block, unchanged until the last release, which comes after `execute`.
            unsafe { std::slice::from_raw_parts(block.ptr.cast_const(), block.bytes as usize) }
        };
        Ok(GatheredTensor { name: first.name(), dtype: first.dtype(), shape, bytes })
    }

    /// Memory for an output of all calls: `shape` begins with [`Batch::rows`] when the model batches.
    /// What is written there goes on the wire as it is. 64-byte aligned. Empty if no call wants the
    /// output. Each output once, and not while a response of one of the calls is open.
    pub fn scatter(
        &self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        bytes: usize,
    ) -> Result<&'a mut [u8], Error> {
        let (p, n) = self.scatter_ptr(name, dtype, shape, bytes)?;
        if p.is_null() || n == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the host lends the block exclusively until the batch is sent, which is after `execute`,
        // and never lends it again.
        Ok(unsafe { std::slice::from_raw_parts_mut(p, n) })
    }

    /// As [`Batch::scatter`], for elements of `T`; the size follows from the shape.
    pub fn scatter_slice<T: Element>(
        &self,
        name: &str,
        shape: &[i64],
    ) -> Result<&'a mut [T], Error> {
        let bytes = byte_size::<T>(name, shape)?;
        as_elements(name, self.scatter(name, T::DTYPE, shape, bytes)?)
    }

    /// As [`Batch::scatter`], as pointer and size, for another library to write. Valid until `execute`
    /// returns; null and 0 if no call wants the output.
    pub fn scatter_ptr(
        &self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        bytes: usize,
    ) -> Result<(*mut u8, usize), Error> {
        let alloc = self.host.scatter_alloc.ok_or_else(|| too_old("scatter outputs"))?;
        let mut block = buf(ptr::null_mut(), 0);
        with_str(name, |name| {
            // SAFETY: the batch is being executed, name and shape are valid during the call; what the
            // host returns is ours.
            unsafe {
                let (rank, dims) = (shape.len() as u32, shape.as_ptr());
                let (dtype, bytes, out) = (dtype.to_abi(), bytes as u64, &raw mut block);
                let error = alloc(self.raw, name, dtype, rank, dims, bytes, Place::CPU, out);
                Error::take(self.host, error)
            }
        })?;
        self.scattered.set(true);
        Ok((block.ptr, block.bytes as usize))
    }

    /// Donates memory as an output of all calls, without a copy. `owner` is dropped exactly once, on
    /// any thread, when the last call's rows have gone out: also when this fails or no call wants it.
    pub fn scatter_adopt<O>(
        &self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        owner: O,
    ) -> Result<(), Error>
    where
        O: AsRef<[u8]> + Send + 'static,
    {
        let ctx = Box::into_raw(Box::new(owner));
        // SAFETY: the box is alive until its release, which comes after `scatter_adopt_raw` at the earliest.
        let bytes = unsafe { (*ctx).as_ref() };
        let part = buf(bytes.as_ptr().cast_mut(), bytes.len() as u64);
        // SAFETY: the bytes belong to the owner, which stays where it is until the release.
        unsafe { self.scatter_adopt_raw(name, dtype, shape, part, drop_box::<O>, ctx.cast()) }
    }

    /// As [`Batch::scatter_adopt`], for memory of another library.
    ///
    /// # Safety
    /// The memory stays valid and unchanged until `release(ctx)`, which comes exactly once, on any
    /// thread; it must not unwind.
    pub unsafe fn scatter_adopt_raw(
        &self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        memory: Buf,
        release: unsafe extern "C" fn(ctx: *mut u8),
        ctx: *mut u8,
    ) -> Result<(), Error> {
        let Some(adopt) = self.host.scatter_adopt else {
            // SAFETY: nobody else will release it.
            unsafe { release(ctx) };
            return Err(too_old("scatter outputs"));
        };
        with_str(name, |name| {
            // SAFETY: the batch is being executed, what is lent is valid during the call, the rest is the
            // caller's promise; what the host returns is ours.
            unsafe {
                let (rank, dims) = (shape.len() as u32, shape.as_ptr());
                let (memory, release) = (&raw const memory, Release { func: Some(release) });
                let error = adopt(self.raw, name, dtype.to_abi(), rank, dims, memory, release, ctx);
                Error::take(self.host, error)
            }
        })?;
        self.scattered.set(true);
        Ok(())
    }
}

fn too_old(what: &str) -> Error {
    Error::unsupported(format_args!("this host is too old to {what} of a whole batch"))
}
