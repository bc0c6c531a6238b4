//! What a request may cost at most. `cargo xtask gate` shows what it costs now, `cargo xtask gate --ceilings` prints
//! this table anew.

/// One row; `NONE` is not judged. The unit is one request.
pub struct Ceiling {
    pub row: &'static str,
    /// Calls of the allocator, growing included.
    pub allocations: f64,
    /// Bytes asked of the allocator.
    pub allocated: f64,
    /// Bytes moved in large pieces by memcpy and memmove, as a multiple of the tensor.
    pub copies: f64,
    /// System calls of all threads.
    pub syscalls: f64,
    /// Instructions outside the kernel, all threads.
    pub instructions: f64,
}

pub const NONE: f64 = f64::NAN;

#[rustfmt::skip]
pub const CEILINGS: &[Ceiling] = &[
    Ceiling { row: "v2-http 64", allocations: 1e9, allocated: 1e9, copies: 0.0, syscalls: 1e9, instructions: 1e9 },
    Ceiling { row: "v2-grpc 64", allocations: 1e9, allocated: 1e9, copies: 0.0, syscalls: 1e9, instructions: 1e9 },
    Ceiling { row: "v2-json 64", allocations: 1e9, allocated: 1e9, copies: 0.0, syscalls: 1e9, instructions: 1e9 },
    Ceiling { row: "v1-http 64", allocations: 1e9, allocated: 1e9, copies: 0.0, syscalls: 1e9, instructions: 1e9 },
    Ceiling { row: "v1-grpc 64", allocations: 1e9, allocated: 1e9, copies: 0.0, syscalls: 1e9, instructions: 1e9 },
    Ceiling { row: "v2-http 4M", allocations: 1e9, allocated: 1e9, copies: 1e9, syscalls: NONE, instructions: NONE },
    Ceiling { row: "v2-grpc 4M", allocations: 1e9, allocated: 1e9, copies: 1e9, syscalls: NONE, instructions: NONE },
];
