//! A host that watches: what a backend does with its calls is recorded and held against the interface.
//!
//! Handles are numbers that point nowhere, so one that is used too late is found out and harms nothing.

mod answers; // entries for calls and responses
mod basics; // entries for errors, log, memory and metrics
mod batches; // entries for a batch as a whole
mod books; // what is written down
mod table; // the entries in their order

pub use books::{
    Answer, Batch, Building, Call, Donation, Failure, HeldError, Lease, Made, Output, Scattered,
    Wrong, misuse,
};
pub use table::TABLE;

use super::child::{breach, seen};
use super::memory::Block;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::LazyLock;
use trtserver_plugin_api::abi::types::{self, Buf, Memory, Str, code};

#[derive(Default)]
pub struct State {
    next: u64,
    pub errors: HashMap<u64, Box<HeldError>>,
    /// By address: label and whether it is open.
    pub scopes: HashMap<usize, (String, bool)>,
    pub calls: HashMap<u64, Call>,
    /// Response → call.
    pub responses: HashMap<u64, u64>,
    pub batches: HashMap<usize, Batch>,
    pub leases: HashMap<u64, Lease>,
    /// Metric → kind and value.
    pub metrics: HashMap<u64, (u32, f64)>,
    /// Name → kind and label names.
    pub families: HashMap<String, (u32, Vec<String>)>,
    pub patch: Option<(u32, Vec<u8>)>,
    /// Blocks of outputs that were sent, watched for writes.
    pub sent: Vec<(String, Block)>,
    /// Donations that are over and wait for their release.
    pub done: Vec<Donation>,
    /// Releases wait until they are asked for.
    pub hold_releases: bool,
    /// So many donations and leases there have been.
    pub donated: u64,
    pub leased: u64,
    /// What would break a promise if the call were not a trial, of a model that the backend may not serve.
    pub suspect: Option<(&'static str, String)>,
}

pub struct Host {
    state: Mutex<State>,
    pub changed: Condvar,
}

pub static HOST: LazyLock<Host> =
    LazyLock::new(|| Host { state: Mutex::default(), changed: Condvar::new() });

impl Host {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

const REQUEST: u64 = 1;
const REPLY: u64 = 2;
const RESPONSE: u64 = 3;
const ERROR: u64 = 4;
const METRIC: u64 = 5;
/// No address of x86-64 or AArch64: whoever looks behind a handle crashes there and then.
const NOWHERE: u64 = 0x7A5A_0000_0000_0000;

fn handle<T>(kind: u64, id: u64) -> *mut T {
    std::ptr::without_provenance_mut((NOWHERE | (id << 4) | kind) as usize)
}

/// The number behind a handle of that kind.
fn number<T>(kind: u64, raw: *const T, what: &str) -> Result<u64, Wrong> {
    let word = raw.addr() as u64;
    if word == 0 {
        return misuse(format!("null was passed where a {what} belongs"));
    }
    if word & 0xFFFF_0000_0000_0000 != NOWHERE || word & 15 != kind {
        return misuse(format!("something else was passed where a {what} belongs"));
    }
    Ok((word & !0xFFFF_0000_0000_0000) >> 4)
}

pub fn request_handle(id: u64) -> *mut types::RequestHandle {
    handle(REQUEST, id)
}

pub fn responder_handle(id: u64) -> *mut types::Responder {
    handle(REPLY, id)
}

impl State {
    pub fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub fn raise(&mut self, code: u32, text: &str) -> *mut types::Error {
        let id = self.id();
        self.errors
            .insert(id, Box::new(HeldError { code, text: crate::plugin::text::c_text(text) }));
        handle(ERROR, id)
    }

    /// Takes an error that the backend returned.
    pub fn take_error(&mut self, error: *mut types::Error, from: &str) -> Result<(), Failure> {
        if error.is_null() {
            return Ok(());
        }
        match number(ERROR, error, "error").ok().and_then(|id| self.errors.remove(&id)) {
            Some(held) => {
                let text = held.text.to_string_lossy().into_owned();
                if text.is_empty() {
                    breach("host.calls", format!("{from} failed with an error without a text"));
                }
                Err(Failure { code: held.code, text })
            }
            None => {
                let text = format!(
                    "{from} returned an error that the host did not make, or that was freed"
                );
                breach("host.calls", &text);
                Err(Failure { code: code::UNKNOWN, text })
            }
        }
    }

    /// The error behind a pointer that stays the sender's.
    pub fn peek(&self, error: *const types::Error) -> Result<Option<Failure>, Wrong> {
        if error.is_null() {
            return Ok(None);
        }
        match self.errors.get(&number(ERROR, error, "error")?) {
            Some(e) => {
                Ok(Some(Failure { code: e.code, text: e.text.to_string_lossy().into_owned() }))
            }
            None => misuse("an error was used after it had been freed"),
        }
    }

    pub fn scope(&self, scope: *const types::Scope) -> Result<usize, Wrong> {
        match self.scopes.get(&scope.addr()) {
            Some((_, true)) => Ok(scope.addr()),
            Some((label, false)) => {
                misuse(format!("the scope of {label} was used after its close"))
            }
            None if scope.is_null() => misuse("null was passed where a scope belongs"),
            None => misuse("something else was passed where a scope belongs"),
        }
    }

    fn call(&mut self, id: u64) -> Result<&mut Call, Wrong> {
        let gone = "a request, reply or response was used after it had been given back";
        match self.calls.get_mut(&id) {
            // Held by the batch until execute returns, by the plugin while it retains the reply.
            Some(call) if !call.returned || call.retained > 0 => Ok(call),
            _ => misuse(gone),
        }
    }

    /// Ends a call; what was being built goes.
    pub fn end(&mut self, id: u64, end: Result<(), Failure>) {
        if let Some(call) = self.calls.get_mut(&id) {
            call.end = Some(end);
            seen("call.once");
        }
        HOST.changed.notify_all();
    }

    /// Watches a block of an output that nobody may write any more.
    pub fn retire(&mut self, name: &str, block: Block) {
        if let Some(words) = block.overrun() {
            breach("output.bounds", format!("output '{name}': {words}"));
            return;
        }
        seen("output.bounds");
        block.spend();
        // The newest are watched; all would be much for models with large outputs.
        if self.sent.len() > 64 || block.bytes > 16 << 20 {
            self.look_back();
        }
        self.sent.push((name.to_owned(), block));
    }

    /// Holds what was sent against what it was left as.
    pub fn look_back(&mut self) {
        for (name, block) in self.sent.drain(..) {
            seen("output.late");
            if block.touched_since_spent() {
                breach(
                    "output.late",
                    format!("output '{name}' was written after it had been sent"),
                );
            } else if let Some(words) = block.overrun() {
                breach("output.late", format!("output '{name}', after it had been sent: {words}"));
            }
        }
    }

    /// The bytes of an output that is sent, and the memory on its way out.
    pub fn finish(&mut self, name: &str, made: Made) -> Vec<u8> {
        match made {
            Made::Ours(block) => {
                let data = block.copy();
                self.retire(name, block);
                data
            }
            Made::Donated { parts, was, donation } => {
                // SAFETY: the plugin promised this memory until its release, which comes later.
                if unsafe { gathered(&parts) } != was {
                    breach(
                        "output.donated",
                        format!("output '{name}' was written after it had been donated"),
                    );
                }
                if donation.release.func.is_some() {
                    self.done.push(donation);
                }
                was
            }
        }
    }

    pub fn drop_building(&mut self, building: Building) {
        for (name, _, made) in building.outputs {
            self.finish(&name, made);
        }
    }
}

/// # Safety
/// Address and length of readable memory each.
pub unsafe fn gathered(parts: &[(usize, usize)]) -> Vec<u8> {
    let mut all = Vec::new();
    for (at, n) in parts.iter().filter(|(_, n)| *n > 0) {
        let from = std::ptr::with_exposed_provenance::<u8>(*at);
        // SAFETY: by the caller's promise.
        all.extend_from_slice(unsafe { std::slice::from_raw_parts(from, *n) });
    }
    all
}

/// Runs the body of an entry: what breaks a promise is recorded, and comes back as an error. Releases are called
/// with no lock held, on a thread of their own.
fn entry(name: &str, body: impl FnOnce(&mut State) -> Result<(), Wrong>) -> *mut types::Error {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut state = HOST.lock();
        let error = match body(&mut state) {
            Ok(()) => std::ptr::null_mut(),
            Err(wrong) => {
                let text = format!("{name}: {}", wrong.text);
                if let Some(promise) = wrong.promise {
                    breach(promise, &text);
                }
                state.raise(wrong.code, &text)
            }
        };
        seen("host.calls");
        let done = if state.hold_releases { Vec::new() } else { std::mem::take(&mut state.done) };
        drop(state);
        release(done);
        error
    }));
    result.unwrap_or(std::ptr::null_mut())
}

/// The same for entries that return nothing.
fn tell(name: &str, body: impl FnOnce(&mut State) -> Result<(), Wrong>) {
    let error = entry(name, body);
    if let Ok(id) = number(ERROR, error, "error") {
        HOST.lock().errors.remove(&id);
    }
}

/// Tells the plugin that its memory is its own again, on another thread than any of its own.
pub fn release(done: Vec<Donation>) {
    if done.is_empty() {
        return;
    }
    let thread = std::thread::spawn(move || {
        for donation in done {
            if let Some(func) = donation.release.func {
                // SAFETY: exactly once, by construction.
                unsafe { func(donation.ctx) };
            }
        }
    });
    let _ = thread.join();
}

/// A text of the plugin, checked.
///
/// # Safety
/// `s.p` is null or valid for `s.n` bytes and the terminator.
unsafe fn text(s: Str, what: &str) -> Result<String, Wrong> {
    if s.n == 0 {
        return Ok(String::new());
    }
    if s.p.is_null() || s.n > 1 << 30 {
        return misuse(format!("{what} is no text: {} bytes at {:p}", s.n, s.p));
    }
    // SAFETY: by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(s.p, s.n as usize + 1) };
    if bytes[s.n as usize] != 0 {
        return misuse(format!("{what} is a text without its terminator"));
    }
    match std::str::from_utf8(&bytes[..s.n as usize]) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => misuse(format!("{what} is not UTF-8")),
    }
}

/// Stores a result in the plugin's memory.
///
/// # Safety
/// `out` is null or has room for one value.
unsafe fn put<T>(out: *mut T, value: T) -> Result<(), Wrong> {
    if out.is_null() {
        return misuse("null was passed where the result was to go");
    }
    // SAFETY: by the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

fn buf(ptr: *mut u8, bytes: usize, memory_handle: u64) -> Buf {
    Buf {
        ptr,
        bytes: bytes as u64,
        memory: Memory::CPU,
        ready: std::ptr::null_mut(),
        memory_handle,
    }
}
