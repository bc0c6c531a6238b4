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
use trtserver_framework::row_values::{are_equal, fill};
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
