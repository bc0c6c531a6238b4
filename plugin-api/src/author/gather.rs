//! Gather and scatter: inputs of a batch in one block, outputs written once and split by the host.

use super::batch::Batch;
use super::device::{Event, Stream};
use super::dtype::{Dtype, Element};
use super::error::Error;
use super::host::with_str;
use super::response::{as_elements, byte_size, cpu_buffer, drop_box};
use crate::abi::host::{Release, gather_mode};
use crate::abi::types::{Buf, Memory};
use std::ptr;

/// An input over all requests of a batch, read-only. See [`Batch::gather`].
#[derive(Clone)]
pub struct GatheredTensor<'a> {
    name: &'a str,
    dtype: Dtype,
    shape: Vec<i64>,
    bytes: &'a [u8],
}

impl<'a> GatheredTensor<'a> {
    /// As clients and the configuration call it.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// As [`Batch::gathered_shape`].
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// All elements, row-major in the machine's byte order; strings as in a request.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements in place. Fails if `T` is not the tensor's type, or if the bytes are unaligned
    /// (set [`super::BackendInfo::align`] to prevent that).
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

/// # All requests at once
///
/// A model that computes a batch in one call gathers its inputs and scatters its outputs; the host
/// copies inputs only where those of several requests are not adjacent. Scattered outputs are sent
/// when `execute` returns: each request that is not finished by then gets its rows of the outputs
/// it requested. A request that was failed, finished or detached gets none; an error from `execute`
/// goes to all unfinished requests.
impl<'a> Batch<'a> {
    /// The input at `position` of [`super::Request::inputs`] of all requests: their rows one after
    /// another (strings likewise). All requests of a batch have the same inputs in the same order.
    /// Fails when shapes differ beyond the batch dimension, unless the input is ragged or a batch
    /// input.
    pub fn gather(&self, position: usize) -> Result<GatheredTensor<'a>, Error> {
        let block = self.gather_buf(position, Memory::CPU, None)?;
        let input = |request: super::Request<'a>| request.inputs().nth(position);
        let first = self.requests().next().and_then(input);
        let first = first.ok_or_else(|| Error::internal("the host gathered no input"))?;
        let shape = self.gathered_shape(position);
        let bytes = if block.ptr.is_null() || block.bytes == 0 {
            &[]
        } else {
            // SAFETY: the host's block, unchanged until the last release, which comes after
            // `execute`.
            unsafe { std::slice::from_raw_parts(block.ptr.cast_const(), block.bytes as usize) }
        };
        Ok(GatheredTensor { name: first.name(), dtype: first.dtype(), shape, bytes })
    }

    /// The shape of [`Batch::gather`]: as in the requests, with the rows of all of them first; of a
    /// ragged input the number of elements of all of them.
    pub fn gathered_shape(&self, position: usize) -> Vec<i64> {
        let mut all = self.requests().filter_map(|request| request.inputs().nth(position));
        let Some(first) = all.next() else { return Vec::new() };
        if first.is_ragged() {
            return vec![
                all.map(|other| other.elements() as i64).sum::<i64>() + first.elements() as i64,
            ];
        }
        let mut shape = first.shape().to_vec();
        match shape.first_mut() {
            Some(rows) if first.is_batch_input() => {
                *rows += all.filter_map(|other| other.shape().first().copied()).sum::<i64>();
            }
            Some(rows) if self.len() > 1 => *rows = self.rows() as i64,
            _ => {}
        }
        shape
    }

    /// As [`Batch::gather`], in other memory, such as that of the instance's device. The block is
    /// ready for work submitted to the instance's compute stream, and to `stream`; valid until
    /// `execute` returns and, if the batch ends with an event ([`Batch::finish_after`]), until that
    /// is reached.
    pub fn gather_buf(
        &self,
        position: usize,
        memory: Memory,
        stream: Option<Stream>,
    ) -> Result<Buf, Error> {
        let mut block = cpu_buffer(ptr::null_mut(), 0);
        let input = u32::try_from(position).unwrap_or(u32::MAX);
        let stream = stream.map_or(ptr::null_mut(), Stream::as_raw);
        // SAFETY: the batch is being executed; an error is owned by the caller.
        unsafe {
            let gather = self.host.gather;
            let error = gather(self.raw, input, memory, gather_mode::ROWS, stream, &raw mut block);
            Error::take(self.host, error)?;
        }
        Ok(block)
    }

    /// Memory for an output of all requests: `shape` begins with [`Batch::rows`] when the model
    /// batches. What is written there is sent as it is. 64-byte aligned. Empty if no request asked
    /// for the output. Once per output, and not while a response of one of the requests exists.
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
        // SAFETY: the block is borrowed exclusively until the batch is finished, which is after
        // `execute`, and never returned twice.
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

    /// As [`Batch::scatter`], as pointer and size, for another library to write. Valid until
    /// `execute` returns; null and 0 if no request asked for the output.
    pub fn scatter_ptr(
        &self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        bytes: usize,
    ) -> Result<(*mut u8, usize), Error> {
        let block = self.scatter_buf(name, dtype, shape, bytes, Memory::CPU)?;
        Ok((block.ptr, block.bytes as usize))
    }

    /// As [`Batch::scatter_ptr`], in other memory, such as that of the instance's device; the host
    /// may choose CPU memory all the same. Ready for work submitted to the instance's compute
    /// stream; written until the event of [`Batch::finish_after`] or, without one, by what was
    /// submitted to that stream during `execute`.
    pub fn scatter_buf(
        &self,
        name: &str,
        dtype: Dtype,
        shape: &[i64],
        bytes: usize,
        memory: Memory,
    ) -> Result<Buf, Error> {
        let mut block = cpu_buffer(ptr::null_mut(), 0);
        with_str(name, |name| {
            // SAFETY: the batch is being executed, name and shape are valid during the call; an
            // error is owned by the caller.
            unsafe {
                let (rank, dims) = (shape.len() as u32, shape.as_ptr());
                let (dtype, bytes, out) = (dtype.to_abi(), bytes as u64, &raw mut block);
                let alloc = self.host.scatter_alloc;
                let error = alloc(self.raw, name, dtype, rank, dims, bytes, memory, out);
                Error::take(self.host, error)
            }
        })?;
        self.scattered.set(true);
        Ok(block)
    }

    /// Ends the batch with an event: outputs in GPU memory are read, and inputs reused, once it is
    /// reached. Needed only by backends that use streams of their own: without it, the host waits
    /// for what was submitted to the instance's compute stream. Inputs of detached requests are
    /// reused when `execute` returns.
    pub fn finish_after(&self, event: Event) {
        self.after.set(Some(event));
    }

    /// Adds an output of all requests in memory of the backend, without a copy. The host drops
    /// `owner` exactly once, on any thread, after the last request's rows were sent: also when this
    /// fails or no request asked for it.
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
        // SAFETY: the box is alive until its release, which comes after `scatter_adopt_raw` at the
        // earliest.
        let bytes = unsafe { (*ctx).as_ref() };
        let part = cpu_buffer(bytes.as_ptr().cast_mut(), bytes.len() as u64);
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
        let adopt = self.host.scatter_adopt;
        with_str(name, |name| {
            // SAFETY: the batch is being executed, arguments are valid during the call, the rest is
            // the caller's promise; an error is owned by the caller.
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
