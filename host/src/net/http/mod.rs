//! HTTP/1.1 front ends.
pub mod body; // the body of every response

// Until both generations are merged.
pub mod v1 {
    use super::super::context::Context;
    use super::body::ResponseBody;
    use std::sync::Arc;
    pub async fn handle(
        _: &Arc<Context>,
        _: http::Request<hyper::body::Incoming>,
        _: u64,
    ) -> http::Response<ResponseBody> {
        http::Response::new(String::new().into())
    }
}
pub mod v2 {
    pub use super::v1::handle;
}
