//! Whether the rows of a model are independent: padding with rows of zeros must not change the
//! others.
//!
//! A session of several rows runs twice. The first row is the same in both runs, all others are
//! zeros in one and something else in the other. If the first row of an output differs, rows depend
//! on each other.

use super::fault::explain_fault;
use super::fixed_block::InputSource;
use super::fixed_session::FixedSession;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::abi::types::dtype;
use trtserver_plugin_api::author::{Device, Memory};

/// # Errors
/// An output whose rows depend on each other, or a run that fails.
pub fn expect_independent_rows(
    session: &mut FixedSession,
    device: &Device,
) -> Result<(), PluginFault> {
    let alone = run_rows(session, device, false)?;
    let beside = run_rows(session, device, true)?;
    let plan = &session.session.model.plan;
    for ((slot, alone), beside) in plan.outputs.iter().zip(&alone).zip(&beside) {
        if !are_equal(slot.dtype, alone, beside) {
            return Err(PluginFault::unsupported(format!(
                "the first row of output '{}' changes with the other rows",
                slot.name
            )));
        }
    }
    Ok(())
}

/// The first row of each output of a run in which the other rows are zeros, or `others`.
fn run_rows(
    session: &mut FixedSession,
    device: &Device,
    others: bool,
) -> Result<Vec<Vec<u8>>, PluginFault> {
    let plan = &session.session.model.plan;
    let kinds: Vec<u32> = plan.inputs.iter().map(|input| input.dtype).collect();
    let mut written = Vec::with_capacity(kinds.len());
    let mut ran = Ok(());
    for (at, kind) in kinds.into_iter().enumerate() {
        let row_bytes = session.inputs()[at].row_bytes;
        let mut bytes = vec![0u8; row_bytes * session.rows];
        let (first, rest) = bytes.split_at_mut(row_bytes);
        fill(kind, first, 1);
        if others {
            fill(kind, rest, 3);
        }
        let source = InputSource { data: bytes.as_ptr(), bytes: bytes.len(), memory: Memory::CPU };
        // SAFETY: the bytes are kept until the stream has read them: see below.
        ran = ran.and_then(|()| unsafe { session.write_input(device, (at, 0), source) });
        written.push(bytes);
    }
    let ran = ran.and_then(|()| session.run()).map_err(|fault| explain_fault(fault, device));
    // After an error as well: copies that were queued before it read what was written.
    let waited = super::wait_for_stream(device, device.stream());
    ran?;
    waited?;
    session.read_first_rows(device)
}

/// Small numbers that differ from element to element; of integers 0 and 1, which are in the range of
/// most indices.
fn fill(kind: u32, bytes: &mut [u8], seed: usize) {
    const HALVES: [u16; 5] = [0x3000, 0x3400, 0x3600, 0x3800, 0x3900];
    const BRAINS: [u16; 5] = [0x3e00, 0x3e80, 0x3ec0, 0x3f00, 0x3f20];
    let eighths = |at: usize| ((at + seed) % 5 + 1) as f32 / 8.0;
    let mut put = |size: usize, element: &dyn Fn(usize) -> [u8; 8]| {
        for (at, to) in bytes.chunks_exact_mut(size).enumerate() {
            to.copy_from_slice(&element(at)[..size]);
        }
    };
    let wide = |value: u64| value.to_le_bytes();
    match kind {
        dtype::FP16 => put(2, &|at| wide(HALVES[(at + seed) % 5].into())),
        dtype::BF16 => put(2, &|at| wide(BRAINS[(at + seed) % 5].into())),
        dtype::FP32 => put(4, &|at| wide(eighths(at).to_bits().into())),
        dtype::FP64 => put(8, &|at| wide(f64::from(eighths(at)).to_bits())),
        dtype::INT64 | dtype::UINT64 => put(8, &|at| wide(((at + seed) % 2) as u64)),
        dtype::INT32 | dtype::UINT32 => put(4, &|at| wide(((at + seed) % 2) as u64)),
        dtype::INT16 | dtype::UINT16 => put(2, &|at| wide(((at + seed) % 2) as u64)),
        _ => put(1, &|at| wide(((at + seed) % 2) as u64)),
    }
}

/// Whether two rows are equal, as far as the rounding of a sum in another order allows.
fn are_equal(kind: u32, one: &[u8], other: &[u8]) -> bool {
    let tolerance = match kind {
        dtype::FP16 | dtype::BF16 => 1e-2,
        dtype::FP32 | dtype::FP64 => 1e-3,
        _ => return one == other,
    };
    let close = |(a, b): (f64, f64)| {
        a == b
            || a.is_nan() && b.is_nan()
            || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-2)
    };
    one.len() == other.len() && read_floats(kind, one).zip(read_floats(kind, other)).all(close)
}

fn read_floats(kind: u32, bytes: &[u8]) -> impl Iterator<Item = f64> {
    let size = match kind {
        dtype::FP64 => 8,
        dtype::FP32 => 4,
        _ => 2,
    };
    bytes.chunks_exact(size).map(move |element| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(element);
        let bits = u64::from_le_bytes(wide);
        match kind {
            dtype::FP64 => f64::from_bits(bits),
            dtype::FP32 => f32::from_bits(bits as u32).into(),
            dtype::BF16 => f32::from_bits((bits as u32) << 16).into(),
            _ => read_half(bits as u32),
        }
    })
}

fn read_half(bits: u32) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 0x1f, f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent as i32 - 15),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

#[cfg(test)]
#[path = "row_proof_tests.rs"]
mod tests;
