//! Limits for unit tests.

use crate::config::UnreadLimits;
use std::time::Duration;

pub fn limits(per_stream: usize, per_connection: usize) -> UnreadLimits {
    UnreadLimits { per_stream, per_connection, timeout: Duration::from_millis(100) }
}
