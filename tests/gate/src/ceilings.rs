//! Ceilings for the cost of a request. `cargo xtask gate` shows the current figures, `cargo xtask gate --ceilings` prints
//! a new table.

/// One row, per request; `NONE` is not judged.
pub struct Ceiling {
    pub row: &'static str,
    /// Calls of the allocator, reallocations included.
    pub allocations: f64,
    /// Bytes requested from the allocator.
    pub allocated: f64,
    /// Bytes moved by memcpy and memmove in pieces of 4 KiB or more; the echo model itself copies the tensor once.
    pub copied: f64,
    /// System calls of all threads.
    pub syscalls: f64,
    /// Instructions outside the kernel, all threads.
    pub instructions: f64,
}

pub const NONE: f64 = f64::NAN;

#[rustfmt::skip]
pub const CEILINGS: &[Ceiling] = &[
    Ceiling { row: "v2-http 64", allocations: 8.9, allocated: 1_430.0, copied: 5_180.0, syscalls: 11.1, instructions: 67_800.0 },
    Ceiling { row: "v2-grpc 64", allocations: 13.1, allocated: 4_240.0, copied: 0.0, syscalls: 11.1, instructions: 87_100.0 },
    Ceiling { row: "v2-json 64", allocations: 8.8, allocated: 1_530.0, copied: 5_180.0, syscalls: 11.1, instructions: 84_800.0 },
    Ceiling { row: "v1-http 64", allocations: 31.9, allocated: 14_900.0, copied: 17_400.0, syscalls: 11.1, instructions: 77_400.0 },
    Ceiling { row: "v1-grpc 64", allocations: 31.7, allocated: 8_060.0, copied: 0.0, syscalls: 11.2, instructions: 101_000.0 },
    Ceiling { row: "v2-http 4M", allocations: 21.4, allocated: 800_000.0, copied: 9_240_000.0, syscalls: NONE, instructions: NONE },
    Ceiling { row: "v2-grpc 4M", allocations: 50.0, allocated: 6_000_000.0, copied: 9_230_000.0, syscalls: NONE, instructions: NONE },
];
