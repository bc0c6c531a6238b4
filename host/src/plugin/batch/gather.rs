//! One block of an input over all calls of a batch: what touches already is lent, the rest copied once.

use super::requests::BatchRequests;
use super::views::InputView;
use crate::error::{Error, Result};
use crate::plugin::text::read;
use crate::request::buffer::AlignedBuf;
use crate::request::pool;
use crate::request::{ShapeText, Signature};
use bytes::Bytes;
use smallvec::SmallVec;
use trtserver_plugin_api::abi::types::{Buf, Memory, tensor_flags};

/// What a batch has gathered so far, and small blocks of earlier ones.
#[derive(Default)]
pub struct Gathered {
    done: Vec<Done>,
    spare: Vec<AlignedBuf>,
}

struct Done {
    position: u32,
    buf: Buf,
    held: Held,
}

/// What keeps a gathered block: it outlives the requests that its bytes came from.
enum Held {
    Lent(#[allow(dead_code, reason = "held, not read")] SmallVec<[Bytes; 4]>),
    Copied(AlignedBuf),
}

/// One call's share, and what keeps it while it is looked at.
type Part<'a> = (InputView<'a>, Bytes);

impl Gathered {
    /// The input in place `position` of all calls as one block.
    ///
    /// # Errors
    /// The calls' inputs do not fit together, or one was released before.
    pub fn gather(&mut self, requests: &BatchRequests, position: u32) -> Result<Buf> {
        if let Some(done) = self.done.iter().find(|d| d.position == position) {
            return Ok(done.buf);
        }
        let signature = requests.signature()?;
        let parts = parts_of(requests, &signature, position)?;
        fit_together(&signature, &parts)?;
        let (buf, held) = match touching(&parts) {
            Some(buf) => (buf, Held::Lent(parts.into_iter().map(|(_, keeper)| keeper).collect())),
            None => self.copy(&signature, &parts)?,
        };
        self.done.push(Done { position, buf, held });
        Ok(buf)
    }

    fn copy(&mut self, signature: &Signature, parts: &[Part<'_>]) -> Result<(Buf, Held)> {
        let total = parts.iter().map(|(view, _)| view.buf.bytes as usize).sum();
        let mut block = self.room(total).ok_or_else(|| {
            Error::internal(format!(
                "model '{}': the {total} bytes to gather an input in are not there",
                signature.model
            ))
        })?;
        let mut rest = &mut block.as_mut()[..total];
        for (view, _) in parts {
            let (to, behind) = rest.split_at_mut(view.buf.bytes as usize);
            if !to.is_empty() {
                // SAFETY: bytes of a request's tensor, which the keeper beside it keeps, or of the
                // frame's aligned copy; the block is another one.
                to.copy_from_slice(unsafe { std::slice::from_raw_parts(view.buf.ptr, to.len()) });
            }
            rest = behind;
        }
        let (ptr, bytes) = (block.as_mut_ptr(), total as u64);
        let buf =
            Buf { ptr, bytes, memory: Memory::CPU, ready: std::ptr::null_mut(), memory_handle: 0 };
        Ok((buf, Held::Copied(block)))
    }

    /// The smallest spare block that is large enough, or a new one.
    fn room(&mut self, bytes: usize) -> Option<AlignedBuf> {
        let fitting = self.spare.iter().enumerate().filter(|(_, block)| block.len() >= bytes);
        match fitting.min_by_key(|(_, block)| block.len()) {
            Some((at, _)) => Some(self.spare.swap_remove(at)),
            // All of it is written at once.
            None => AlignedBuf::try_for_input(None, bytes),
        }
    }

    /// The batch is over: its small blocks wait for the next one, large ones go where every model finds them. Those that
    /// it had no use for go.
    pub fn clear(&mut self) {
        let used = self.done.drain(..).filter_map(|done| match done.held {
            Held::Copied(block) => Some(block),
            Held::Lent(_) => None,
        });
        let mut used = used.peekable();
        if used.peek().is_none() {
            return;
        }
        self.spare = used.filter(|block| block.len() < pool::MIN_SIZE).collect();
    }
}

fn parts_of<'a>(
    requests: &'a BatchRequests,
    signature: &Signature,
    position: u32,
) -> Result<SmallVec<[Part<'a>; 8]>> {
    let at = position as usize;
    let fault = |what: &str| {
        Error::invalid(format!(
            "model '{}': input number {position} cannot be gathered: {what}",
            signature.model
        ))
    };
    let views = requests.views.inputs_at(at);
    let mut parts = SmallVec::new();
    for (slot, view) in requests.slots().iter().zip(views) {
        let view = view.ok_or_else(|| fault("a call of the batch has fewer inputs"))?;
        // The views show the inputs of a request in the request's own order.
        let keeper = slot.input(at).ok_or_else(|| fault("a request was released before"))?;
        parts.push((view, keeper));
    }
    Ok(parts)
}

fn fit_together(signature: &Signature, parts: &[Part<'_>]) -> Result<()> {
    let Some(((first, _), others)) = parts.split_first() else {
        return Err(Error::invalid("an empty batch has nothing to gather"));
    };
    // SAFETY: names live as long as the views.
    let name = || unsafe { read(first.tensor.name) };
    let fault = |what: String| {
        Err(Error::invalid(format!(
            "model '{}': input '{}' cannot be gathered: {what}",
            signature.model,
            name()
        )))
    };
    let batched = signature.batching() && first.tensor.flags & tensor_flags::SHAPE_TENSOR == 0;
    if !others.is_empty() && !batched {
        return fault("it has no batch dimension, and there are several requests".into());
    }
    for (other, _) in others {
        // Names of one model are one text.
        if other.tensor.name.p != first.tensor.name.p || other.tensor.dtype != first.tensor.dtype {
            return fault("another request of the batch has another input in its place".into());
        }
        if first.shape.get(1..) != other.shape.get(1..) {
            return fault(format!(
                "shapes {} and {} differ beyond the batch dimension",
                ShapeText(first.shape),
                ShapeText(other.shape)
            ));
        }
    }
    let uneven = |(view, _): &&Part<'_>| view.shape.first() != Some(&i64::from(view.rows));
    match parts.iter().find(uneven).filter(|_| batched && !others.is_empty()) {
        None => Ok(()),
        Some((view, _)) => fault(format!(
            "shape {} does not begin with the batch size {}",
            ShapeText(view.shape),
            view.rows
        )),
    }
}

/// The parts as one piece of memory, if they lie so: one request, or slices of one block in order.
fn touching(parts: &[Part<'_>]) -> Option<Buf> {
    let mut with_bytes = parts.iter().map(|(view, _)| view.buf).filter(|buf| buf.bytes > 0);
    let Some(first) = with_bytes.next() else { return parts.first().map(|(view, _)| *view.buf) };
    let mut end = first.ptr.addr() + first.bytes as usize;
    for buf in with_bytes {
        if buf.ptr.addr() != end {
            return None;
        }
        end += buf.bytes as usize;
    }
    Some(Buf { bytes: (end - first.ptr.addr()) as u64, ..*first })
}
