//! Whether this process is that of an isolated model; the extension `trts.process`: its end, which its backend asks for.

use super::guard::guard;
use super::scope::Scope;
use crate::error::Error as HostError;
use crate::plugin::isolated::child::ending;
use crate::plugin::text::read;
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_plugin_api::abi::extensions::ProcessExtension;
use trtserver_plugin_api::abi::types::{self, Error, Str};

static ISOLATED: AtomicBool = AtomicBool::new(false);

/// Marks this process as one that runs a single model. Called before the first library is opened.
pub fn set_isolated() {
    ISOLATED.store(true, Ordering::Relaxed);
}

pub(super) fn is_isolated() -> bool {
    ISOLATED.load(Ordering::Relaxed)
}

pub(super) static TABLE: ProcessExtension =
    ProcessExtension { size: size_of::<ProcessExtension>() as u64, restart };

unsafe extern "C" fn restart(instance: *mut types::Scope, reason: Str) -> *mut Error {
    guard(|| {
        if !is_isolated() {
            return Err(HostError::unsupported(
                "the server's own process is not restarted for a backend",
            ));
        }
        // SAFETY: null or a scope that exists during the call, as the text does.
        let (scope, reason) = unsafe { (Scope::from_handle(instance), read(reason)) };
        let name = scope.map(|scope| scope.label().trim_start_matches("instance "));
        ending::begin(name, reason);
        Ok(())
    })
}
