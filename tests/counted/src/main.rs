//! `trtserver-counted`: the server, counting allocations and copies. A connection to the port
//! printed after `listening counts` receives one line with the counts so far, and the bytes that are
//! allocated now, and is closed.
//!
//! Counted are the allocations of all code linked into the server, and the bytes that memcpy and
//! memmove move in pieces of [`LARGE`] or more, in the server and in its plugins. Not counted:
//! allocations of plugins (they have their own allocators), bytes moved by reallocations, copies by
//! the kernel.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Write};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use trtserver_config as config;
use trtserver_config::log;
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};
use trtserver_server as server;

/// Smaller copies are headers and names.
const LARGE: usize = 4 << 10;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED_BYTES: AtomicU64 = AtomicU64::new(0);
static COPIED_BYTES: AtomicU64 = AtomicU64::new(0);
/// Allocated and not freed.
static LIVE_BYTES: AtomicU64 = AtomicU64::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(size: usize) {
    ALLOCATIONS.fetch_add(1, Relaxed);
    ALLOCATED_BYTES.fetch_add(size as u64, Relaxed);
    LIVE_BYTES.fetch_add(size as u64, Relaxed);
}

fn count_freed(size: usize) {
    LIVE_BYTES.fetch_sub(size as u64, Relaxed);
}

// SAFETY: all calls are forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the contract of `alloc_zeroed`, which is the same for the
        // system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        count_freed(layout.size());
        // SAFETY: the caller upholds the contract of `realloc`, which is the same for the system's
        // allocator.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count_freed(layout.size());
        // SAFETY: the caller upholds the contract of `dealloc`, which is the same for the system's
        // allocator.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Replace the C library's functions in this program and, because the dynamic linker resolves
/// symbols here first, in its plugins.
#[cfg(target_arch = "x86_64")]
mod copies {
    use super::{COPIED_BYTES, LARGE};
    use std::arch::asm;
    use std::sync::atomic::Ordering::Relaxed;

    fn count(size: usize) {
        if size >= LARGE {
            COPIED_BYTES.fetch_add(size as u64, Relaxed);
        }
    }

    /// # Safety
    /// As C's memcpy.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller guarantees both ranges. Inline assembly, since a Rust copy would call
        // this function.
        unsafe {
            asm!("rep movsb", inout("rcx") size => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
        to
    }

    /// # Safety
    /// As C's memmove.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, size: usize) -> *mut u8 {
        if (to as usize).wrapping_sub(from as usize) >= size {
            // SAFETY: with an ascending copy no byte is overwritten before it is read.
            return unsafe { memcpy(to, from, size) };
        }
        count(size);
        let (last_to, last_from) =
            (to.wrapping_add(size).wrapping_sub(1), from.wrapping_add(size).wrapping_sub(1));
        // SAFETY: the caller promises `size` valid bytes at both addresses. The copy descends, so
        // that no byte of overlapping ranges is overwritten before it is read; the direction flag
        // is restored.
        unsafe {
            asm!("std", "rep movsb", "cld", inout("rcx") size => _, inout("rdi") last_to => _,
                inout("rsi") last_from => _, options(nostack));
        }
        to
    }
}

fn main() -> ExitCode {
    if let Err(e) = serve_counts() {
        eprintln!("trtserver-counted: cannot serve the counts: {e}");
        return ExitCode::FAILURE;
    }
    let env = |name: &str| std::env::var(name).ok();
    let start = match config::from_args(
        std::env::args_os(),
        &env,
        format!("{ABI_MAJOR}.{ABI_MINOR}").as_str(),
    ) {
        Ok(start) => start,
        Err(stop) => {
            eprint!("{}{}", stop.stdout, stop.stderr);
            return ExitCode::from(stop.code);
        }
    };
    let log = match log::init_log(&start.settings.log, Box::new(|_| {})) {
        Ok(log) => log,
        Err(e) => {
            eprintln!("trtserver-counted: the log cannot be opened: {e}");
            return ExitCode::FAILURE;
        }
    };
    ExitCode::from(server::run_server(start.settings, log, Default::default()))
}

fn serve_counts() -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("listening counts {}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // All are read before the response allocates.
            let counts = [&ALLOCATIONS, &ALLOCATED_BYTES, &COPIED_BYTES, &LIVE_BYTES];
            let [n, bytes, copied, live] = counts.map(|count| count.load(Relaxed));
            let _ = writeln!(&stream, "{n} {bytes} {copied} {live}");
        }
    });
    Ok(())
}
