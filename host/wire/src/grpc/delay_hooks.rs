//! The delay hooks of Triton's test suites: variables of the environment that hold gRPC calls back.

use super::body::GrpcBody;
use super::unary;
use http::Response;
use std::pin::Pin;
use std::time::Duration;
use tonic::Status;

/// The delays that the environment asks for.
pub struct DelayHooks {
    infer: CallDelays,
    control: CallDelays,
}

/// Delays of a call, zero without a hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallDelays {
    /// Before the call is handled.
    before: Duration,
    /// Between the response of the model and the call's.
    after: Duration,
    /// Between the cancellation by the client and that of the request.
    cancel: Duration,
}

impl DelayHooks {
    /// `None` without a hook, which is the rule.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| -> u64 {
            let value = env(&format!("TRITONSERVER_{name}"));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        let millis =
            |names: &[&str]| Duration::from_millis(names.iter().map(|name| number(name)).sum());
        let infer = CallDelays {
            before: millis(&["DELAY_GRPC_PROCESS", "DELAY_GRPC_PROCESS_ENTRY"]),
            after: millis(&[
                "DELAY_GRPC_ENQUEUE",
                "DELAY_GRPC_COMPLETE",
                "DELAY_GRPC_RESPONSE",
                "DELAY_RESPONSE_COMPLETE_EXEC",
                "DELAY_RESPONSE_COMPLETION",
            ]),
            cancel: millis(&["DELAY_GRPC_NOTIFICATION"]),
        };
        let after = Duration::from_secs(number("SERVER_DELAY_GRPC_RESPONSE_SEC"));
        let control = CallDelays { after, ..CallDelays::default() };
        if infer.are_zero() && control.are_zero() {
            return None;
        }
        tracing::warn!(
            "gRPC calls are delayed by variables TRITONSERVER_…DELAY… of the environment"
        );
        Some(Self { infer, control })
    }

    /// The delays of a call, if it has any.
    pub fn delays(&self, is_inference: bool) -> Option<CallDelays> {
        let delays = if is_inference { self.infer } else { self.control };
        (!delays.are_zero()).then_some(delays)
    }
}

type CallFuture = Pin<Box<dyn Future<Output = Response<GrpcBody>> + Send>>;

impl CallDelays {
    fn are_zero(self) -> bool {
        self == Self::default()
    }

    /// `call` with the delays. Dropping the result cancels the call, later.
    pub async fn around(self, call: CallFuture) -> Response<GrpcBody> {
        tokio::time::sleep(self.before).await;
        let mut held = HeldCall { call: Some(call), delay: self.cancel };
        let response = match &mut held.call {
            Some(call) => call.as_mut().await,
            None => return unary::refuse_call(&Status::internal("the call was lost")),
        };
        tokio::time::sleep(self.after).await;
        held.call = None;
        response
    }
}

/// Drops the call after a delay, which cancels it.
struct HeldCall {
    call: Option<CallFuture>,
    delay: Duration,
}

impl Drop for HeldCall {
    fn drop(&mut self) {
        if let Some(call) = self.call.take().filter(|_| !self.delay.is_zero()) {
            let delay = self.delay;
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                drop(call);
            });
        }
    }
}

#[cfg(test)]
#[path = "delay_hooks_tests.rs"]
mod tests;
