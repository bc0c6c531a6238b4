//! Child processes: connections and threads of the library do not survive `fork`, so a child of a
//! process that used the library gets errors instead of calls that never end.

use crate::failure::{ClientFailure, Outcome};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether this process was forked from one that used the library.
pub fn is_child() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// # Errors
/// The process was forked from one that used the library.
pub fn refuse_after_fork() -> Outcome<()> {
    static REGISTERED: Once = Once::new();
    // SAFETY: the handler only stores to an atomic.
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
    if is_child() {
        let text = "the client library was used before fork(); use it in the child process only, or start \
                    the child with exec";
        return Err(ClientFailure::argument(text));
    }
    Ok(())
}
