//! Load reports in responses to inference: for a request that asks for one, or for all.

use crate::context::FrontendContext;
use crate::grpc::body::{GrpcBody, STATUS};
use http::{HeaderMap, Response};
use std::sync::Arc;
use trtserver_config::LoadReportMode;
use trtserver_load_report::{LoadReporter, ReportFormat};

/// A report that a response is to have.
pub struct DemandedReport {
    format: ReportFormat,
    reporter: Arc<LoadReporter>,
}

impl FrontendContext {
    /// The report for the response to a request with these headers. `unasked`: the form for
    /// requests that do not ask, if all responses have a report.
    pub fn demanded_report(
        &self,
        headers: &HeaderMap,
        unasked: ReportFormat,
    ) -> Option<DemandedReport> {
        let format = match self.settings.load_reports {
            LoadReportMode::Off => return None,
            LoadReportMode::OnRequest => ReportFormat::requested(headers)?,
            LoadReportMode::Always => ReportFormat::requested(headers).unwrap_or(unasked),
        };
        Some(DemandedReport { format, reporter: Arc::clone(&self.load_reporter) })
    }
}

impl DemandedReport {
    /// Adds the report to the headers of a response over HTTP, or to trailers.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        self.format.add_to(headers, &self.reporter.report());
    }

    /// Adds the report to the trailers of a gRPC call, which are its headers if nothing follows
    /// them.
    pub fn add_to_call(self, response: &mut Response<GrpcBody>) {
        match response.headers().contains_key(STATUS) {
            true => self.add_to(response.headers_mut()),
            false => response.body_mut().report_load(self),
        }
    }
}
