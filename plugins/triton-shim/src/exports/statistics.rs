//! `TRITONBACKEND_ModelInstanceReport*`: times of requests, batches and responses.
//!
//! The host counts requests and responses itself, when it sends them. What it takes from a backend
//! are the phases of a batch.

use super::guard::{Ended, Flag, Maybe, Out, export};
use crate::execute::{self, ExecutionTimes};
use crate::fault::TritonFault;
use crate::handles::{self, LiveObject, create_object, free_object};
use crate::objects::error::ErrorObject;
use crate::objects::factory::ResponseFactory;
use crate::objects::instance::InstanceObject;
use crate::objects::request::RequestObject;
use crate::objects::statistics::ResponseStatistics;
use std::sync::atomic::Ordering::Relaxed;

export! {
    /// Times of one request, before its release: start, compute start, compute end, end.
    fn TRITONBACKEND_ModelInstanceReportStatistics(
        instance: LiveObject<InstanceObject>,
        request: LiveObject<RequestObject>,
        success: Flag,
        exec_start_ns: u64,
        compute_start_ns: u64,
        compute_end_ns: u64,
        exec_end_ns: u64,
    ) {
        request.host()?;
        if success.0 {
            let times = ExecutionTimes { exec_start_ns, compute_start_ns, compute_end_ns, exec_end_ns };
            execute::report_request(instance, &times);
        }
    }

    /// Times of a batch: start, compute start, compute end, end.
    fn TRITONBACKEND_ModelInstanceReportBatchStatistics(
        instance: LiveObject<InstanceObject>,
        _batch_size: u64,
        exec_start_ns: u64,
        compute_start_ns: u64,
        compute_end_ns: u64,
        exec_end_ns: u64,
    ) {
        let times = ExecutionTimes { exec_start_ns, compute_start_ns, compute_end_ns, exec_end_ns };
        execute::report_batch(instance, &times);
    }

    /// Statistics of a response of a decoupled model, owned by the caller.
    fn TRITONBACKEND_ModelInstanceResponseStatisticsNew(
        response_statistics: Out<*mut ResponseStatistics>,
    ) {
        response_statistics.set(create_object(ResponseStatistics::default()).raw());
    }

    /// Frees response statistics.
    fn TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
        response_statistics: Ended<ResponseStatistics>,
    ) {
        free_object(response_statistics.0)?;
    }

    /// Sets the instance of the response.
    fn TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
        response_statistics: LiveObject<ResponseStatistics>,
        model_instance: LiveObject<InstanceObject>,
    ) {
        response_statistics.instance.store(model_instance.raw(), Relaxed);
    }

    /// Sets the factory of the response.
    fn TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
        response_statistics: LiveObject<ResponseStatistics>,
        response_factory: LiveObject<ResponseFactory>,
    ) {
        response_statistics.factory.store(response_factory.raw(), Relaxed);
    }

    /// Sets when the response was begun.
    fn TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
        response_statistics: LiveObject<ResponseStatistics>,
        response_start: u64,
    ) {
        response_statistics.start_ns.store(response_start, Relaxed);
    }

    /// Sets when outputs began to be written; 0 for an empty response.
    fn TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
        response_statistics: LiveObject<ResponseStatistics>,
        compute_output_start: u64,
    ) {
        response_statistics.output_start_ns.store(compute_output_start, Relaxed);
    }

    /// Sets when the response was complete.
    fn TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
        response_statistics: LiveObject<ResponseStatistics>,
        response_end: u64,
    ) {
        response_statistics.end_ns.store(response_end, Relaxed);
    }

    /// Sets the error that was sent; it stays the caller's.
    fn TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
        response_statistics: LiveObject<ResponseStatistics>,
        error: Maybe<ErrorObject>,
    ) {
        let _ = (response_statistics, error.0);
    }

    /// Reports a response. The host has counted it when it was sent; here only the order of times
    /// is checked.
    fn TRITONBACKEND_ModelInstanceReportResponseStatistics(
        response_statistics: LiveObject<ResponseStatistics>,
    ) {
        handles::get_object(response_statistics.instance.load(Relaxed))?;
        handles::get_object(response_statistics.factory.load(Relaxed))?;
        let (start, end) =
            (response_statistics.start_ns.load(Relaxed), response_statistics.end_ns.load(Relaxed));
        let output = match response_statistics.output_start_ns.load(Relaxed) {
            0 => start,
            output => output,
        };
        if start > output || output > end {
            return Err(TritonFault::invalid(format_args!(
                "the times of a response are out of order: start {start}, outputs {output}, end {end}"
            )));
        }
    }
}
