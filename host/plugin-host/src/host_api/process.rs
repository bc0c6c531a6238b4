//! Whether this process is that of an isolated model; the extension `trts.process`: its end, which
//! its backend asks for.

use super::guard::guard_entry;
use super::scope::Scope;
use crate::host_state::HOST;
use crate::text::read_text;
use trtserver_base::error::Error as HostError;
use trtserver_plugin_api::abi::extensions::ProcessExtension;
use trtserver_plugin_api::abi::types::{self, Error, Str};

/// Ends the child process: the name of the instance that cannot go on (`None`: none can), and the
/// reason.
pub type EndProcess = Box<dyn Fn(Option<&str>, String) + Send + Sync>;

/// Marks this process as one that runs a single model. Called before the first library is opened.
pub fn set_isolated(end_process: impl Fn(Option<&str>, String) + Send + Sync + 'static) {
    let _ = HOST.end_process.set(Box::new(end_process));
}

pub(super) fn is_isolated() -> bool {
    HOST.end_process.get().is_some()
}

pub(super) static TABLE: ProcessExtension =
    ProcessExtension { size: size_of::<ProcessExtension>() as u64, restart };

unsafe extern "C" fn restart(instance: *mut types::Scope, reason: Str) -> *mut Error {
    guard_entry(|| {
        let Some(end_process) = HOST.end_process.get() else {
            return Err(HostError::unsupported(
                "the server's own process is not restarted for a backend",
            ));
        };
        // SAFETY: null or a scope that exists during the call, as the text does.
        let (scope, reason) = unsafe { (Scope::from_handle(instance), read_text(reason)) };
        let name = scope.map(|scope| scope.label().trim_start_matches("instance "));
        end_process(name, reason);
        Ok(())
    })
}
