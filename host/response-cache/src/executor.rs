//! What the cache needs of the scheduler of a version.

use trtserver_request::{InferRequest, Responder};
use trtserver_scheduler::Scheduler;

/// Executes requests.
pub trait RequestExecutor: Send + Sync {
    /// The request gets its final response whatever happens.
    fn execute(&self, request: InferRequest);

    /// Responses leave in the order in which requests arrive.
    fn is_ordered(&self) -> bool;

    /// Gives a request that is not executed its place in that order.
    fn order_response(&self, responder: &Responder);

    /// The same executor, for a request that waits.
    fn retained(&self) -> Box<dyn RequestExecutor>;
}

impl RequestExecutor for Scheduler {
    fn execute(&self, request: InferRequest) {
        self.submit(request);
    }

    fn is_ordered(&self) -> bool {
        Scheduler::is_ordered(self)
    }

    fn order_response(&self, responder: &Responder) {
        Scheduler::order_response(self, responder);
    }

    fn retained(&self) -> Box<dyn RequestExecutor> {
        Box::new(self.clone())
    }
}
