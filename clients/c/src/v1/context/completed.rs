//! Asynchronous runs that have completed: their results, and cancellation; statistics of a context.

use super::{Error, V1Context};
use crate::arguments::result;
use crate::failure::call;
use crate::handle::Handle;
use crate::v1::result::V1Result;
use std::sync::Arc;

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_take(
    context: Handle<V1Context>,
    id: u64,
    wait: bool,
    taken: *mut u64,
    place: *mut Handle<V1Result>,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result(place, "result") }?);
        let id = match id {
            0 => context.context.next_completed(wait)?,
            id => Some(id),
        };
        let Some(id) = id else {
            place.write(Handle::NULL);
            return Ok(());
        };
        // SAFETY: the caller promises that `taken` is NULL or may be written.
        if let Ok(taken) = unsafe { result(taken, "taken") } {
            taken.write(id);
        }
        let found = context.context.take(id, wait)?;
        place.write(found.map_or(Handle::NULL, |results| {
            // The run that knew the order of the outputs is over: the outputs have the order of the model.
            let order: Vec<_> =
                context.context.model().outputs().iter().map(|o| o.name.clone()).collect();
            Handle::new(Arc::new(V1Result::new(results, &order)))
        }));
        Ok(())
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_next_completed(
    context: Handle<V1Context>,
    wait: bool,
    id: *mut u64,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result(id, "id") }?);
        place.write(context.context.next_completed(wait)?.unwrap_or(0));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_cancel(context: Handle<V1Context>, id: u64) -> Error {
    call(|| {
        context.get()?.context.cancel(id);
        Ok(())
    })
}

#[repr(C)]
pub struct RawStatistics {
    completed_request_count: u64,
    total_request_time_ns: u64,
    send_time_ns: u64,
    receive_time_ns: u64,
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_context_statistics(
    context: Handle<V1Context>,
    statistics: *mut RawStatistics,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result(statistics, "statistics") }?;
        let sums = context.get()?.context.statistics();
        place.write(RawStatistics {
            completed_request_count: sums.completed_request_count,
            total_request_time_ns: sums.cumulative_total_request_time_ns,
            send_time_ns: sums.cumulative_send_time_ns,
            receive_time_ns: sums.cumulative_receive_time_ns,
        });
        Ok(())
    })
}
