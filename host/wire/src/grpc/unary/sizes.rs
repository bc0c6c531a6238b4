//! Sizes of gRPC messages.

/// Tensors of a shorter message for an isolated model are copied into its arena later.
pub const MIN_IN_ARENA: usize = 1 << 10;
/// Length of the prefix of a message: compression flag and length.
pub const PREFIX: usize = 5;
/// The longest message in either direction.
pub const MAX_MESSAGE: usize = i32::MAX as usize;
