//! Memory of the head of a request on HTTP/1 that does not arrive at once, drawn from the memory
//! budget until the response is ready.
//!
//! hyper reads heads of up to 400 KiB into one buffer. Its first bytes are not drawn: each
//! connection has them.

use super::ConnectionState;
use super::state::Phase;
use std::io;
use trtserver_base::budget::{MemoryReservation, request_memory};
use trtserver_base::ledger::LedgerHolder;

/// The size of hyper's first buffer.
const FIRST_BUFFER: usize = 8 << 10;

/// Memory budget that the head of one HTTP/1 request holds, in bytes.
#[derive(Default)]
pub struct HeadMemory {
    /// Read since the head began.
    bytes: usize,
    reservation: Option<MemoryReservation>,
}

impl HeadMemory {
    /// `count` bytes were read.
    pub fn read(&mut self, state: &ConnectionState, count: usize) {
        let began = state.phase() == Phase::Head;
        state.read(count);
        if state.phase() == Phase::Head {
            self.bytes = if began { self.bytes + count } else { count };
            if began {
                state.turn.add_head_bytes(count);
            }
        }
    }

    /// Draws memory for a head that is still incomplete after what was read; gives it back once the
    /// response is ready.
    ///
    /// # Errors
    /// There is no memory for the head.
    pub fn settle(&mut self, state: &ConnectionState) -> io::Result<()> {
        if self.bytes <= FIRST_BUFFER && self.reservation.is_none() {
            return Ok(());
        }
        match state.phase() {
            Phase::Head => self.draw(),
            Phase::Body | Phase::Executing => Ok(()),
            _ => {
                *self = Self::default();
                state.turn.reset();
                Ok(())
            }
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let wanted = self.bytes.saturating_sub(FIRST_BUFFER);
        let empty = || request_memory().empty(LedgerHolder::OpenCall);
        let reservation = self.reservation.get_or_insert_with(empty);
        let drawn = reservation.try_grow(wanted.saturating_sub(reservation.bytes()));
        drawn.map_err(|exhausted| io::Error::other(exhausted.refuse().message))
    }
}

#[cfg(test)]
#[path = "head_memory_tests.rs"]
mod tests;
