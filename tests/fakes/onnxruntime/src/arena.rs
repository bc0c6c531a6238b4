//! Device memory of a session: blocks that are kept when their values are released, up to a limit.

use crate::cuda::Driver;
use std::sync::{Arc, Mutex, PoisonError};

pub struct Arena {
    pub driver: Driver,
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Address and size.
    all: Vec<(u64, usize)>,
    free: Vec<(u64, usize)>,
    total: usize,
}

/// A block; back in the arena when it is dropped.
pub struct Block {
    pub at: u64,
    bytes: usize,
    arena: Arc<Arena>,
}

impl Arena {
    pub fn new(driver: Driver, limit: usize) -> Arc<Self> {
        Arc::new(Self { driver, limit, state: Mutex::default() })
    }

    pub fn alloc(self: &Arc<Self>, bytes: usize) -> Result<Block, String> {
        let bytes = bytes.max(1);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match state.free.iter().position(|(_, size)| *size == bytes) {
            Some(found) => state.free.swap_remove(found).0,
            None => {
                let available = self.limit - state.total;
                if bytes > available {
                    return Err(format!(
                        "AllocateRawInternal Available memory of {available} is smaller than requested bytes of {bytes}"
                    ));
                }
                let at = self.driver.alloc(bytes)?;
                state.total += bytes;
                state.all.push((at, bytes));
                at
            }
        };
        Ok(Block { at, bytes, arena: Arc::clone(self) })
    }

    pub fn total(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut state = self.arena.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.free.push((self.at, self.bytes));
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.all.iter().for_each(|(at, _)| self.driver.free(*at));
    }
}
