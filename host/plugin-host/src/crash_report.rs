//! Crash report: when the process crashes, standard error names the backend code that was running,
//! and the frames of the stack.
//!
//! ```text
//! crash: SIGSEGV (invalid memory access) at address 0x8 in execute of instance 'm_0_cpu' of model 'm' version 1, backend 'b'
//!        1.0 from /…/libtrtserver_b.so, thread 'm/1#0'        (one line)
//! crash: #0 /…/libtrtserver_b.so+0x11a9 (execute+0x10)
//! ```
//!
//! Every call of an entry sets thread-local pointers to what names it: three stores per call. Calls
//! do not nest. The signal handler only reads it, uses no lock and no allocation, and leaves the
//! signal to its default action afterwards, so that exit status and core file are as without it. It
//! runs on the alternate stack that Rust gives to each of its threads. The line about the backend
//! is written first, because reading the stack may fail: the loader's lock may be held.

use libc::{c_int, c_void, siginfo_t};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals of a crash.
const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV (invalid memory access)"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];

/// Begins every line of the report.
pub const PREFIX: &str = "crash: ";
/// Begins the lines about frames.
pub const FRAME_PREFIX: &str = "crash: #";
const MAX_FRAMES: usize = 64;
/// Seconds after which a report that does not end is given up.
const LIMIT: u32 = 5;

/// What an entry of a backend is called for: a file, a backend, a model, an instance.
pub struct CrashSubject(Box<str>);

impl CrashSubject {
    /// `text` goes on after "in ENTRY of ".
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Until the result is dropped this thread executes `entry` of this subject.
    #[inline]
    pub fn enter(&self, entry: &'static BackendEntry) -> EntryGuard<'_> {
        ENTRY.set(entry);
        SUBJECT.set(self);
        EntryGuard(PhantomData)
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Name of an entry.
pub struct BackendEntry(pub &'static str);

pub static LOAD: BackendEntry = BackendEntry("the initialisers");
pub static BACKEND_INFO: BackendEntry = BackendEntry("backend_info");
pub static BACKEND_OPEN: BackendEntry = BackendEntry("backend_open");
pub static BACKEND_CLOSE: BackendEntry = BackendEntry("backend_close");
pub static AUTOCOMPLETE: BackendEntry = BackendEntry("autocomplete");
pub static MODEL_PROBE: BackendEntry = BackendEntry("model_probe");
pub static MODEL_OPEN: BackendEntry = BackendEntry("model_open");
pub static MODEL_CLOSE: BackendEntry = BackendEntry("model_close");
pub static INSTANCE_OPEN: BackendEntry = BackendEntry("instance_open");
pub static INSTANCE_CLOSE: BackendEntry = BackendEntry("instance_close");
pub static EXECUTE: BackendEntry = BackendEntry("execute");
pub static CANCEL: BackendEntry = BackendEntry("cancel");

thread_local! {
    /// What this thread executes, null = nothing. Constant and without a destructor, so that a
    /// signal handler may read it at any time.
    static SUBJECT: Cell<*const CrashSubject> = const { Cell::new(null()) };
    /// Set before `SUBJECT`.
    static ENTRY: Cell<*const BackendEntry> = const { Cell::new(null()) };
}

/// See [`CrashSubject::enter`].
/// Stays on its thread and does not outlive the subject.
pub struct EntryGuard<'a>(PhantomData<(&'a CrashSubject, *const ())>);

impl Drop for EntryGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        SUBJECT.set(null());
    }
}

/// Installs the signal handlers. Once, before the process starts threads.
pub fn install_handlers() {
    let mut frames = [null_mut(); 1];
    // SAFETY: the buffer has one element. The first call may load libgcc, which a signal handler
    // must not do.
    unsafe { libc::backtrace(frames.as_mut_ptr(), 1) };
    for (signal, _) in SIGNALS {
        set_handler(signal, on_crash as *const () as libc::sighandler_t);
    }
}

fn set_handler(signal: c_int, handler: libc::sighandler_t) {
    // SAFETY: a zeroed sigaction is valid, the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // A second crash of this thread ends the process at once.
        libc::sigfillset(&mut action.sa_mask);
        libc::sigdelset(&mut action.sa_mask, libc::SIGALRM);
        libc::sigaction(signal, &action, null_mut());
    }
}

/// The signal that is being reported. Process-wide: a signal handler gets no other state.
static REPORTED: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_crash(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    if REPORTED.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // Another thread is writing its report and ends the process.
        loop {
            // SAFETY: async-signal-safe.
            unsafe { libc::pause() };
        }
    }
    set_handler(libc::SIGALRM, on_alarm as *const () as libc::sighandler_t);
    // SAFETY: async-signal-safe.
    unsafe { libc::alarm(LIMIT) };
    write_call(signal, info);
    write_frames(instruction(context));
    // SAFETY: the kernel passes a valid info.
    let by_fault = unsafe { (*info).si_code } > 0;
    end(signal, by_fault);
}

extern "C" fn on_alarm(_signal: c_int, _info: *mut siginfo_t, _context: *mut c_void) {
    end(REPORTED.load(Ordering::Acquire), false);
}

/// The signal's default action follows: a fault occurs again at the same place, others are raised
/// again.
fn end(signal: c_int, by_fault: bool) {
    // SAFETY: async-signal-safe.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if !by_fault {
            libc::raise(signal);
        }
    }
}

fn write_call(signal: c_int, info: *mut siginfo_t) {
    let mut line = ReportLine::new();
    line.text(PREFIX);
    line.text(SIGNALS.iter().find(|(number, _)| *number == signal).map_or("signal", |(_, s)| s));
    // SAFETY: the kernel passes a valid info; a fault has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code > 0 && signal != libc::SIGABRT {
        line.text(" at address 0x");
        line.hex(address);
    }
    let (subject, entry) = (SUBJECT.get(), ENTRY.get());
    if subject.is_null() || entry.is_null() {
        line.text(" outside of calls of backends");
    } else {
        // SAFETY: `enter` borrows both until `SUBJECT` is null.
        let (subject, entry) = unsafe { (&*subject, &*entry) };
        line.text(" in ");
        line.text(entry.0);
        line.text(" of ");
        line.text(&subject.0);
    }
    let mut name = [0u8; 16];
    // SAFETY: async-signal-safe; the name has at most 16 bytes with its NUL.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    line.text(", thread '");
    line.bytes(name.split(|byte| *byte == 0).next().unwrap_or_default());
    line.text("'");
    line.write();
}

/// The address of the instruction that was executed, 0 = unknown.
fn instruction(context: *mut c_void) -> usize {
    // SAFETY: the kernel passes a valid context.
    let Some(context) = (unsafe { context.cast::<libc::ucontext_t>().as_ref() }) else { return 0 };
    #[cfg(target_arch = "x86_64")]
    return context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    return context.uc_mcontext.pc as usize;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return (context, 0).1;
}

/// The frames from the one at `innermost` on; those before it are this handler's.
fn write_frames(innermost: usize) {
    let mut frames = [null_mut::<c_void>(); MAX_FRAMES];
    // SAFETY: the buffer has this many elements.
    let n = unsafe { libc::backtrace(frames.as_mut_ptr(), MAX_FRAMES as c_int) };
    let frames = &frames[..n.max(0) as usize];
    let first = frames.iter().position(|frame| *frame as usize == innermost).unwrap_or(0);
    for (number, frame) in frames[first..].iter().enumerate() {
        let address = *frame as usize;
        let mut line = ReportLine::new();
        line.text(FRAME_PREFIX);
        line.decimal(number);
        line.text(" ");
        let mut found: MaybeUninit<libc::Dl_info> = MaybeUninit::zeroed();
        // SAFETY: fills the structure if the address is in a library; its texts are those of the
        // loader.
        let found =
            unsafe { (libc::dladdr(*frame, found.as_mut_ptr()) != 0).then(|| found.assume_init()) };
        match found {
            Some(found) if !found.dli_fname.is_null() => {
                line.c_text(found.dli_fname);
                line.text("+0x");
                line.hex(address.wrapping_sub(found.dli_fbase as usize));
                if !found.dli_sname.is_null() {
                    line.text(" (");
                    line.c_text(found.dli_sname);
                    line.text("+0x");
                    line.hex(address.wrapping_sub(found.dli_saddr as usize));
                    line.text(")");
                }
            }
            _ => {
                line.text("0x");
                line.hex(address);
            }
        }
        line.write();
    }
}

/// A line on the stack; what exceeds it is cut off.
struct ReportLine {
    bytes: [u8; 1024],
    n: usize,
}

impl ReportLine {
    fn new() -> Self {
        Self { bytes: [0; 1024], n: 0 }
    }

    fn bytes(&mut self, text: &[u8]) {
        // One byte is kept for the newline.
        let n = text.len().min(self.bytes.len() - 1 - self.n);
        self.bytes[self.n..self.n + n].copy_from_slice(&text[..n]);
        self.n += n;
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn c_text(&mut self, text: *const libc::c_char) {
        // SAFETY: NUL-terminated text of the loader.
        self.bytes(unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes());
    }

    fn digits(&mut self, mut number: usize, base: usize) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b"0123456789abcdef"[number % base];
            number /= base;
            if number == 0 {
                break;
            }
        }
        self.bytes(&digits[at..]);
    }

    fn hex(&mut self, number: usize) {
        self.digits(number, 16);
    }

    fn decimal(&mut self, number: usize) {
        self.digits(number, 10);
    }

    fn write(&mut self) {
        self.bytes[self.n] = b'\n';
        // SAFETY: async-signal-safe; the bytes are initialised.
        unsafe { libc::write(2, self.bytes.as_ptr().cast(), self.n + 1) };
    }
}
