//! The test host: records what a backend does and checks it against the interface.
//!
//! Handles are numbers, not addresses, so that a handle that is used too late is detected and harms
//! nothing.

mod batches; // entries for a batch as a whole
mod devices; // events, copies, faults
mod extensions; // metrics and memory
mod outputs; // entries for outputs
mod records; // records of what the backend did
mod responses; // entries for requests and responses
mod services; // errors, log, time, loading
mod table; // the host table

pub(crate) use records::{
    AdoptedMemory, Allocation, BatchRecord, CallRefusal, ErrorRecord, OpenOutput, OpenResponse,
    OutputMemory, RequestRecord, ScatteredOutput, refuse_misuse,
};
pub use records::{Failure, Metric, Output, Response, ScopeRecord, SentParam};
pub use services::set_log_level;
pub use table::host_table;

use crate::lock;
use crate::memory::GuardedBlock;
use crate::report::{report_exercised, report_violation};
use std::collections::{HashMap, HashSet};
use std::ptr::without_provenance_mut;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard};
use trtserver_plugin_api::abi::types::{self, Buf, Memory, Str, code};

#[derive(Default)]
pub(crate) struct HostState {
    next: u64,
    pub errors: HashMap<u64, Box<ErrorRecord>>,
    pub scopes: HashMap<u64, ScopeRecord>,
    pub requests: HashMap<u64, RequestRecord>,
    /// Response → request.
    pub responses: HashMap<u64, u64>,
    /// By address.
    pub batches: HashMap<usize, BatchRecord>,
    pub allocations: HashMap<u64, Allocation>,
    /// Events that were not destroyed.
    pub events: HashSet<u64>,
    /// Metric → scope, index there, kind.
    pub metrics: HashMap<u64, (u64, usize, u32)>,
    /// Name → kind and label names.
    pub families: HashMap<String, (u32, Vec<String>)>,
    /// Extensions that were looked up.
    pub lookups: Vec<(String, u32)>,
    /// Blocks of outputs that were sent, checked for writes.
    pub sent: Vec<(String, GuardedBlock)>,
    /// Adopted memory that the host no longer needs.
    pub done: Vec<AdoptedMemory>,
    /// Adopted memory is kept until [`crate::hold_releases`] is called with false.
    pub hold_releases: bool,
    pub abandon_loads: bool,
    /// Outputs adopted, blocks allocated, inputs gathered and outputs scattered so far.
    pub counts: crate::Counts,
    /// A violation in an unchecked request, of a model that the backend may not support.
    pub suspect: Option<(&'static str, String)>,
}

static STATE: LazyLock<Mutex<HostState>> = LazyLock::new(Mutex::default);
/// Notified when a request is released or finished.
pub(crate) static CHANGED: Condvar = Condvar::new();

pub(crate) fn lock_state() -> MutexGuard<'static, HostState> {
    lock(&STATE)
}

const REQUEST: u64 = 1;
const RESPONDER: u64 = 2;
const RESPONSE: u64 = 3;
const ERROR: u64 = 4;
const METRIC: u64 = 5;
const SCOPE: u64 = 6;
const EVENT: u64 = 7;
/// Not a canonical address of x86-64 or AArch64: dereferencing a handle crashes at once.
const NOT_AN_ADDRESS: u64 = 0x7A5A_0000_0000_0000;

fn handle<T>(kind: u64, id: u64) -> *mut T {
    without_provenance_mut((NOT_AN_ADDRESS | (id << 4) | kind) as usize)
}

/// The id of a handle of that kind.
fn handle_id<T>(kind: u64, raw: *const T, what: &str) -> Result<u64, CallRefusal> {
    let word = raw.addr() as u64;
    if word == 0 {
        return refuse_misuse(format!("null passed as {what}"));
    }
    if word & 0xFFFF_0000_0000_0000 != NOT_AN_ADDRESS || word & 15 != kind {
        return refuse_misuse(format!("{raw:p} passed as {what}"));
    }
    Ok((word & !0xFFFF_0000_0000_0000) >> 4)
}

pub(crate) fn request_handle(id: u64) -> *mut types::RequestHandle {
    handle(REQUEST, id)
}

pub(crate) fn responder_handle(id: u64) -> *mut types::Responder {
    handle(RESPONDER, id)
}

/// A scope of the test host.
#[derive(Clone, Copy)]
pub(crate) struct ScopeId(u64);

impl ScopeId {
    pub fn open(label: String) -> Self {
        let mut state = lock_state();
        let id = state.id();
        state.scopes.insert(id, ScopeRecord { label, open: true, ..ScopeRecord::default() });
        Self(id)
    }

    /// Frees the scope's memory; later use is a violation.
    pub fn close(self) {
        let mut state = lock_state();
        if let Some(scope) = state.scopes.get_mut(&self.0) {
            scope.open = false;
        }
        state.allocations.retain(|_, allocation| allocation.scope != self.0);
        for (memory, bytes) in state.scopes.get(&self.0).into_iter().flat_map(|s| &s.reported) {
            let label = state.scopes.get(&self.0).map_or("", |s| &s.label);
            let text = format!("{label} was closed and still reports {bytes} bytes of {memory:?}");
            report_violation("host.memory", text);
        }
    }

    pub fn handle(self) -> *mut types::Scope {
        handle(SCOPE, self.0)
    }

    pub fn record(self) -> ScopeRecord {
        lock_state().scopes.get(&self.0).cloned().unwrap_or_default()
    }
}

impl HostState {
    pub fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub fn new_error(&mut self, code: u32, flags: u32, text: &str) -> *mut types::Error {
        let id = self.id();
        let text = crate::text::c_text(text);
        self.errors.insert(id, Box::new(ErrorRecord { code, flags, text }));
        handle(ERROR, id)
    }

    /// Takes an error that the backend returned.
    pub fn take_error(&mut self, error: *mut types::Error, from: &str) -> Result<(), Failure> {
        if error.is_null() {
            return Ok(());
        }
        match handle_id(ERROR, error, "error").ok().and_then(|id| self.errors.remove(&id)) {
            Some(record) => {
                let failure = record.failure();
                if failure.text.is_empty() {
                    report_violation(
                        "host.calls",
                        format!("{from} returned an error without a text"),
                    );
                }
                Err(failure)
            }
            None => {
                let text = format!("{from} returned an error that is unknown or was freed");
                report_violation("host.calls", &text);
                Err(Failure { code: code::UNKNOWN, flags: 0, text })
            }
        }
    }

    /// A borrowed error.
    pub fn error(&self, error: *const types::Error) -> Result<Option<Failure>, CallRefusal> {
        if error.is_null() {
            return Ok(None);
        }
        match self.errors.get(&handle_id(ERROR, error, "error")?) {
            Some(record) => Ok(Some(record.failure())),
            None => refuse_misuse("an error was used after it was freed"),
        }
    }

    /// Takes an event of which an entry takes ownership; null = none.
    fn take_event(&mut self, event: *mut types::Event) -> Result<(), CallRefusal> {
        if event.is_null() || self.events.remove(&handle_id(EVENT, event, "event")?) {
            return Ok(());
        }
        refuse_misuse("an event was used after it was destroyed or given to the host")
    }

    fn scope(
        &mut self,
        scope: *const types::Scope,
    ) -> Result<(u64, &mut ScopeRecord), CallRefusal> {
        let id = handle_id(SCOPE, scope, "scope")?;
        match self.scopes.get_mut(&id) {
            Some(record) if record.open => Ok((id, record)),
            Some(record) => {
                refuse_misuse(format!("the scope of {} was used after its close", record.label))
            }
            None => refuse_misuse("an unknown scope was passed"),
        }
    }

    fn request(&mut self, id: u64) -> Result<&mut RequestRecord, CallRefusal> {
        match self.requests.get_mut(&id) {
            // Valid until `execute` returns, and while the responder is detached.
            Some(request) if !request.returned || request.detached > 0 => Ok(request),
            _ => refuse_misuse("a request, responder or response was used after it was released"),
        }
    }

    pub fn finish(&mut self, id: u64, result: Result<(), Failure>) {
        if let Some(request) = self.requests.get_mut(&id) {
            request.result = Some(result);
            report_exercised("request.once");
        }
        CHANGED.notify_all();
    }

    /// Checks a block that was sent, and keeps it to detect later writes.
    fn retire(&mut self, name: &str, block: GuardedBlock) {
        if let Some(overrun) = block.overrun() {
            report_violation("output.bounds", format!("output '{name}': {overrun}"));
            return;
        }
        report_exercised("output.bounds");
        block.poison();
        // Bounds the memory that is kept.
        if self.sent.len() > 64 || block.bytes > 16 << 20 {
            self.check_sent();
        }
        self.sent.push((name.to_owned(), block));
    }

    /// Checks the blocks that were sent.
    pub fn check_sent(&mut self) {
        for (name, block) in self.sent.drain(..) {
            report_exercised("output.late");
            if block.written_since_poison() {
                report_violation(
                    "output.late",
                    format!("output '{name}' was written after it was sent"),
                );
            } else if let Some(overrun) = block.overrun() {
                report_violation(
                    "output.late",
                    format!("output '{name}', after it was sent: {overrun}"),
                );
            }
        }
    }

    /// The contents of an output that is sent or discarded.
    pub fn retire_output(&mut self, output: OpenOutput) -> Output {
        let OpenOutput { name, dtype, shape, memory } = output;
        let (data, adopted) = match memory {
            OutputMemory::Host(block) => {
                let data = block.copy();
                self.retire(&name, block);
                (data, false)
            }
            OutputMemory::AdoptedMemory { parts, contents, adopted } => {
                // SAFETY: by the interface the memory is valid until its release, which comes
                // later.
                if unsafe { copy_parts(&parts) } != contents {
                    let text = format!("output '{name}' was written after it was adopted");
                    report_violation("output.adopted", text);
                }
                self.done.push(adopted);
                (contents, true)
            }
        };
        Output { name, dtype, shape, data, adopted }
    }

    pub fn discard(&mut self, response: OpenResponse) {
        self.responses.remove(&response.id);
        for output in response.outputs {
            self.retire_output(output);
        }
    }

    /// Discards a response that was neither sent nor freed.
    pub fn discard_unsent(&mut self, response: OpenResponse, label: &str) {
        let text = format!("a response to {label} was neither sent nor freed");
        report_violation("host.responses", text);
        self.discard(response);
    }
}

/// # Safety
/// Each part is the address and length of readable memory.
pub(crate) unsafe fn copy_parts(parts: &[(usize, usize)]) -> Vec<u8> {
    let mut all = Vec::new();
    for (address, n) in parts.iter().filter(|(_, n)| *n > 0) {
        let from = std::ptr::with_exposed_provenance::<u8>(*address);
        // SAFETY: by the caller's promise.
        all.extend_from_slice(unsafe { std::slice::from_raw_parts(from, *n) });
    }
    all
}

/// Runs the body of an entry. A refusal is reported and returned as an error. Releases are called
/// without a lock.
fn entry(
    name: &str,
    body: impl FnOnce(&mut HostState) -> Result<(), CallRefusal>,
) -> *mut types::Error {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut state = lock_state();
        let error = match body(&mut state) {
            Ok(()) => std::ptr::null_mut(),
            Err(refusal) => {
                let text = format!("{name}: {}", refusal.text);
                if let Some(promise) = refusal.promise {
                    report_violation(promise, &text);
                }
                state.new_error(refusal.code, 0, &text)
            }
        };
        report_exercised("host.calls");
        let done = if state.hold_releases { Vec::new() } else { std::mem::take(&mut state.done) };
        drop(state);
        call_releases(done);
        error
    }));
    result.unwrap_or(std::ptr::null_mut())
}

/// The same for entries that return nothing.
fn void_entry(name: &str, body: impl FnOnce(&mut HostState) -> Result<(), CallRefusal>) {
    let error = entry(name, body);
    if let Ok(id) = handle_id(ERROR, error, "error") {
        lock_state().errors.remove(&id);
    }
}

/// Releases adopted memory on a new thread, as a host may.
pub(crate) fn call_releases(done: Vec<AdoptedMemory>) {
    let done: Vec<_> = done.into_iter().filter(|adopted| adopted.release.func.is_some()).collect();
    if done.is_empty() {
        return;
    }
    let thread = std::thread::spawn(move || {
        for adopted in done {
            if let Some(func) = adopted.release.func {
                // SAFETY: exactly once, since `adopted` is consumed.
                unsafe { func(adopted.ctx) };
            }
        }
    });
    let _ = thread.join();
}

/// A string of the backend, checked.
///
/// # Safety
/// `s.p` is null or valid for `s.n` bytes and the terminator.
unsafe fn text(s: Str, what: &str) -> Result<String, CallRefusal> {
    if s.n == 0 {
        return Ok(String::new());
    }
    if s.p.is_null() || s.n > 1 << 30 {
        return refuse_misuse(format!("{what} is invalid: {} bytes at {:p}", s.n, s.p));
    }
    // SAFETY: by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(s.p, s.n as usize + 1) };
    if bytes[s.n as usize] != 0 {
        return refuse_misuse(format!("{what} has no terminating NUL"));
    }
    match std::str::from_utf8(&bytes[..s.n as usize]) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => refuse_misuse(format!("{what} is not UTF-8")),
    }
}

/// Stores a result in the backend's memory.
///
/// # Safety
/// `out` is null or valid for one value.
unsafe fn put<T>(out: *mut T, value: T) -> Result<(), CallRefusal> {
    if out.is_null() {
        return refuse_misuse("null passed for the result");
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
