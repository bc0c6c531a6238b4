//! Unary gRPC calls without tonic: tensors are copied at most once when they are received, and sent
//! zero-copy.

mod call;
mod control;
mod message_buf;
mod receive;
mod receiver;
mod respond;
mod sizes;

pub use call::{check_call, no_call, serve_unary};
pub use control::receive_control;
pub use message_buf::{MessageBuf, RequestedModel};
pub use receive::{
    MessageLimits, decode_message, is_heavy, message_headers, open_message, reserve_decoded,
    too_long,
};
pub use receiver::MessageReceiver;
pub use respond::{percent_encode, refuse_call, respond_unary, respond_with};
pub use sizes::{MAX_MESSAGE, MIN_IN_ARENA, PREFIX};

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
