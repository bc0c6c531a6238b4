//! What a request may cost at most. `cargo xtask gate` shows what it costs now, `cargo xtask gate --ceilings` prints
//! this table anew.

/// One row; `NONE` is not judged. The unit is one request.
pub struct Ceiling {
    pub row: &'static str,
    /// Calls of the allocator, growing included.
    pub allocations: f64,
    /// Bytes asked of the allocator.
    pub allocated: f64,
    /// Bytes moved by memcpy and memmove in pieces of 4 KiB or more; the echo itself moves the tensor once.
    pub copied: f64,
    /// System calls of all threads.
    pub syscalls: f64,
    /// Instructions outside the kernel, all threads.
    pub instructions: f64,
}

pub const NONE: f64 = f64::NAN;

#[rustfmt::skip]
pub const CEILINGS: &[Ceiling] = &[
    Ceiling { row: "v2-http 64", allocations: 36.4, allocated: 27_900.0, copied: 12_500.0, syscalls: 8.9, instructions: 77_300.0 },
    Ceiling { row: "v2-grpc 64", allocations: 48.1, allocated: 9_720.0, copied: 0.0, syscalls: 8.9, instructions: 103_000.0 },
    Ceiling { row: "v2-json 64", allocations: 33.1, allocated: 27_600.0, copied: 12_500.0, syscalls: 8.9, instructions: 94_100.0 },
    Ceiling { row: "v1-http 64", allocations: 47.4, allocated: 27_500.0, copied: 12_500.0, syscalls: 8.9, instructions: 82_800.0 },
    Ceiling { row: "v1-grpc 64", allocations: 46.0, allocated: 8_970.0, copied: 0.0, syscalls: 8.9, instructions: 105_000.0 },
    Ceiling { row: "v2-http 4M", allocations: 36.3, allocated: 10_200_000.0, copied: 9_240_000.0, syscalls: NONE, instructions: NONE },
    Ceiling { row: "v2-grpc 4M", allocations: 62.4, allocated: 13_900_000.0, copied: 9_230_000.0, syscalls: NONE, instructions: NONE },
];
