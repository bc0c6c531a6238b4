//! Variables that TensorFlow reads when it is loaded and when it opens its first session. It has no
//! other settings for them.
//!
//! `TF_CPP_MIN_LOG_LEVEL`: TensorFlow logs to stderr, several lines for each model and, for each
//! request that fails, one with contents of the request; only errors are left.
//! `TF_OVERRIDE_GLOBAL_THREADPOOL`: each session gets threads of its own inside operations; without
//! it all sessions use one pool of the size that the first session asked for. A variable that the
//! operator has set is not changed, and the environment is as before once the first session is
//! open.

use std::ffi::{CString, c_char};
use std::sync::{Mutex, PoisonError};

const LOG_LEVEL: &str = "TF_CPP_MIN_LOG_LEVEL";
const ERRORS: i32 = 2;
const DEFAULTS: [(&str, &str); 2] = [(LOG_LEVEL, "2"), ("TF_OVERRIDE_GLOBAL_THREADPOOL", "1")];

/// Addresses of the environment that was replaced and of its copy, until the copy is replaced in
/// turn.
static REPLACED: Mutex<Option<(usize, usize)>> = Mutex::new(None);

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// Sets the variables that are not set; returns the log level.
///
/// Other threads may read the environment meanwhile, so it is replaced by a longer copy. The old
/// one stays as it is and is never freed, nor is the copy. Not for two threads at once.
pub fn prepare_environment() -> i32 {
    let absent: Vec<CString> = DEFAULTS
        .iter()
        .filter(|(name, _)| std::env::var_os(name).is_none())
        .filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok())
        .collect();
    if !absent.is_empty() {
        // SAFETY: the environment is a list of C strings that ends with null. Readers see the old
        // list or the new one, which both stay valid.
        unsafe {
            let mut all = Vec::new();
            let old = environ;
            let mut at = old;
            while !at.is_null() && !(*at).is_null() {
                all.push(*at);
                at = at.add(1);
            }
            all.extend(absent.into_iter().map(CString::into_raw));
            all.push(std::ptr::null_mut());
            environ = all.leak().as_mut_ptr();
            *REPLACED.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((old.expose_provenance(), environ.addr()));
        }
    }
    let level = std::env::var(LOG_LEVEL).ok();
    level.and_then(|level| level.trim().parse().ok()).unwrap_or(ERRORS)
}

/// Puts the environment back that [`prepare_environment`] replaced, unless it has been changed
/// since.
pub fn restore_environment() {
    if let Some((old, copy)) = REPLACED.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // SAFETY: the old list was never freed. Readers see one list or the other, and both stay
        // valid.
        unsafe {
            if environ.addr() == copy {
                environ = std::ptr::with_exposed_provenance_mut(old);
            }
        }
    }
}
