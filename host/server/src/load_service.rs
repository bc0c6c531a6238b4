//! `xds.service.orca.v3.OpenRcaService`: load reports as a stream, for balancers that do not read
//! them from responses.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_stream::Stream;
use tokio_stream::wrappers::IntervalStream;
use tonic::{Request, Response, Status};
use trtserver_load_report::LoadReporter;
use trtserver_proto::load_report::OrcaLoadReport;
use trtserver_proto::load_reports::OrcaLoadReportRequest;
use trtserver_proto::load_reports::open_rca_service_server::{
    OpenRcaService, OpenRcaServiceServer,
};

/// Between two reports for a client that names no interval, and the shortest one.
const USUAL_INTERVAL: Duration = Duration::from_secs(1);
const MIN_INTERVAL: Duration = Duration::from_millis(250);
/// The longest one: what an hour is for.
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

pub struct LoadService {
    reporter: Arc<LoadReporter>,
}

/// The service that reports what `reporter` measures.
pub fn load_service(reporter: Arc<LoadReporter>) -> OpenRcaServiceServer<LoadService> {
    OpenRcaServiceServer::new(LoadService { reporter })
}

type ReportStream = Pin<Box<dyn Stream<Item = Result<OrcaLoadReport, Status>> + Send>>;

#[tonic::async_trait]
impl OpenRcaService for LoadService {
    type StreamCoreMetricsStream = ReportStream;

    /// The first report comes at once.
    async fn stream_core_metrics(
        &self,
        request: Request<OrcaLoadReportRequest>,
    ) -> Result<Response<ReportStream>, Status> {
        let ticks = tokio::time::interval(report_interval(request.get_ref()));
        let reporter = Arc::clone(&self.reporter);
        let reports = tokio_stream::StreamExt::map(IntervalStream::new(ticks), move |_| {
            Ok(reporter.report().message())
        });
        Ok(Response::new(Box::pin(reports)))
    }
}

/// What the client asks for, within bounds.
fn report_interval(request: &OrcaLoadReportRequest) -> Duration {
    let Some(asked) = request.report_interval else { return USUAL_INTERVAL };
    match Duration::try_from(asked) {
        Ok(Duration::ZERO) => USUAL_INTERVAL,
        Ok(interval) => interval.clamp(MIN_INTERVAL, MAX_INTERVAL),
        // A negative one.
        Err(_) => USUAL_INTERVAL,
    }
}

#[cfg(test)]
#[path = "load_service_tests.rs"]
mod tests;
