//! Ceilings for the cost of a request. `cargo xtask gate` shows the current figures,
//! `cargo xtask gate --ceilings` prints a new table.

use crate::measure::idle::{IdleCeiling, IdleWire};

/// Bytes that an idle connection holds, of which the buffers of h2 are 28 KiB over gRPC.
pub const IDLE_CEILINGS: &[IdleCeiling] = &[
    IdleCeiling { wire: IdleWire::Http, bytes: 1_000.0 },
    IdleCeiling { wire: IdleWire::Grpc, bytes: 34_000.0 },
];

/// One row, per request; `NONE` is not judged.
pub struct Ceiling {
    pub row: &'static str,
    /// Calls of the allocator, reallocations included.
    pub allocations: f64,
    /// Bytes requested from the allocator. A body over HTTP is read into the buffer that hyper
    /// already has, since the head of the request is copied out of it.
    pub allocated: f64,
    /// Bytes moved by memcpy and memmove in pieces of 4 KiB or more; the echo model itself copies
    /// the tensor once. In rows with shared memory that is the only copy: their ceiling leaves
    /// place for no other.
    pub copied: f64,
    /// System calls of all threads.
    pub syscalls: f64,
    /// Instructions outside the kernel, all threads.
    pub instructions: f64,
    /// Atomic instructions that write memory, of all threads: a cache line that several processors
    /// write is fetched from one of the others each time.
    pub atomics: f64,
}

pub const NONE: f64 = f64::NAN;

#[rustfmt::skip]
pub const CEILINGS: &[Ceiling] = &[
    Ceiling { row: "v2-http 64", allocations: 4.4, allocated: 906.0, copied: 0.0, syscalls: 6.7, instructions: 56_600.0, atomics: 315.0 },
    Ceiling { row: "v2-grpc 64", allocations: 9.8, allocated: 3_110.0, copied: 0.0, syscalls: 6.7, instructions: 87_100.0, atomics: 550.0 },
    Ceiling { row: "v2-json 64", allocations: 3.4, allocated: 872.0, copied: 0.0, syscalls: 6.7, instructions: 68_600.0, atomics: 308.0 },
    Ceiling { row: "v1-http 64", allocations: 15.6, allocated: 4_280.0, copied: 0.0, syscalls: 6.7, instructions: 67_700.0, atomics: 351.0 },
    Ceiling { row: "v1-grpc 64", allocations: 24.2, allocated: 5_700.0, copied: 0.0, syscalls: 6.7, instructions: 99_000.0, atomics: 565.0 },
    Ceiling { row: "v2-http 4M", allocations: 10.1, allocated: 1_170.0, copied: 9_240_000.0, syscalls: NONE, instructions: NONE, atomics: NONE },
    Ceiling { row: "v2-grpc 4M", allocations: 44.0, allocated: 4_660_000.0, copied: 9_230_000.0, syscalls: NONE, instructions: NONE, atomics: NONE },
    Ceiling { row: "shm-http 64", allocations: 9.9, allocated: 1_260.0, copied: 0.0, syscalls: 6.7, instructions: NONE, atomics: NONE },
    Ceiling { row: "shm-grpc 64", allocations: 39.7, allocated: 6_600.0, copied: 0.0, syscalls: 6.7, instructions: NONE, atomics: NONE },
    Ceiling { row: "shm-http 4M", allocations: 9.9, allocated: 1_260.0, copied: 4_195_000.0, syscalls: NONE, instructions: NONE, atomics: NONE },
    Ceiling { row: "shm-grpc 4M", allocations: 39.6, allocated: 6_660.0, copied: 4_195_000.0, syscalls: NONE, instructions: NONE, atomics: NONE },
];
