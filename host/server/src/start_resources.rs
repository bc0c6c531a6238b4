//! What a server needs of the system at its start: files, address space, threads. Without them the
//! runtime and the allocator panic or abort, so it is looked at before.

use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};

/// Files of the runtimes, with their pipes for signals.
const FILES: usize = 16;
/// Address space for backends and the first requests.
const SPACE: usize = 64 << 20;
/// Stack of threads that ask for no other.
const STACK: usize = 2 << 20;

/// The threads of a server before its first model.
#[derive(Clone, Copy)]
pub struct StartThreads {
    /// Network threads, and bytes of stack of each.
    pub net: usize,
    pub net_stack: usize,
    pub others: usize,
}

/// Checks that there are files, address space and threads for the start, by taking them for a
/// moment.
///
/// # Errors
/// Says what there is not, and which limit to raise.
pub fn check_start_resources(threads: StartThreads) -> Result<(), String> {
    check_files().map_err(|e| {
        let limit = limit_text(Resource::Nofile, 1);
        format!(
            "cannot start: not even {FILES} files can be opened: {e}; the limit of open files (RLIMIT_NOFILE, ulimit -n) is \
             {limit}: raise it"
        )
    })?;
    check_threads(threads).map_err(|refused| {
        let StartThreads { net, net_stack, others } = threads;
        format!(
            "cannot start: {refused}; the server needs {net} threads with {} MiB of stack, {others} with {} MiB, and {} MiB \
             beside them. Limits: address space (RLIMIT_AS, ulimit -v) {}, processes and threads of the user (RLIMIT_NPROC, \
             ulimit -u) {}, pids.max of the control group: raise the one that is reached",
            net_stack >> 20,
            STACK >> 20,
            SPACE >> 20,
            limit_text(Resource::As, 1024),
            limit_text(Resource::Nproc, 1)
        )
    })
}

fn check_files() -> io::Result<()> {
    let files: io::Result<Vec<File>> = (0..FILES).map(|_| File::open("/dev/null")).collect();
    files.map(drop)
}

/// Starts all threads at once, and reserves address space while they exist.
fn check_threads(threads: StartThreads) -> Result<(), String> {
    let StartThreads { net, net_stack, others } = threads;
    let stacks = std::iter::repeat_n(net_stack, net).chain(std::iter::repeat_n(STACK, others));
    let count = net + others;
    // First, so that no allocation of a thread fails, which would abort the process.
    reserve(net * net_stack + others * STACK + SPACE)?;
    let mut started = StartedThreads::default();
    for (position, stack) in stacks.enumerate() {
        let end = Arc::new(Barrier::new(2));
        let waits = Arc::clone(&end);
        let wait = move || {
            // With its first allocation a thread gets a heap of its own, as it would later.
            black_box(Vec::<u8>::with_capacity(64));
            waits.wait();
        };
        let thread = thread::Builder::new().name("start".to_owned()).stack_size(stack).spawn(wait);
        let thread = thread.map_err(|e| format!("thread {} of {count}: {e}", position + 1))?;
        started.0.push((end, thread));
    }
    reserve(SPACE)
}

/// Takes so much address space for a moment.
fn reserve(bytes: usize) -> Result<(), String> {
    let mut space = Vec::<u8>::new();
    let reserved = space.try_reserve_exact(bytes);
    black_box(&space);
    reserved.map_err(|_| format!("{} MiB of memory cannot be reserved", bytes >> 20))
}

/// Ends its threads when dropped.
#[derive(Default)]
struct StartedThreads(Vec<(Arc<Barrier>, JoinHandle<()>)>);

impl Drop for StartedThreads {
    fn drop(&mut self) {
        for (end, thread) in self.0.drain(..) {
            end.wait();
            let _ = thread.join();
        }
    }
}

/// A limit in units of so many bytes, as `ulimit` shows it.
fn limit_text(resource: Resource, unit: u64) -> String {
    getrlimit(resource).current.map_or("unlimited".to_owned(), |limit| (limit / unit).to_string())
}
