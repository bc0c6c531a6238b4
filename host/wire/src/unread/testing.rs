//! Limits for unit tests.

use std::time::Duration;
use trtserver_config::UnreadLimits;

pub fn limits(per_stream: usize, per_connection: usize) -> UnreadLimits {
    UnreadLimits { per_stream, per_connection, timeout: Duration::from_millis(100) }
}
