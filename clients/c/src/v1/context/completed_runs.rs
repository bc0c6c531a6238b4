//! Asynchronous runs that have completed: their results, and cancellation; statistics of a context.

use super::{Error, V1Context};
use crate::arguments::result_place;
use crate::failure::guard_call;
use crate::handle::ObjectHandle;
use crate::v1::result::V1Result;
use std::sync::Arc;

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_take(
    context: ObjectHandle<V1Context>,
    id: u64,
    wait: bool,
    taken: *mut u64,
    place: *mut ObjectHandle<V1Result>,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result_place(place, "result") }?);
        let id = match id {
            0 => context.context.next_completed(wait)?,
            id => Some(id),
        };
        let Some(id) = id else {
            place.write(ObjectHandle::NULL);
            return Ok(());
        };
        // SAFETY: the caller promises that `taken` is NULL or may be written.
        if let Ok(taken) = unsafe { result_place(taken, "taken") } {
            taken.write(id);
        }
        let found = context.context.take(id, wait)?;
        place.write(found.map_or(ObjectHandle::NULL, |results| {
            // The run that knew the order of the outputs is over: the outputs have the order of the
            // model.
            let order: Vec<_> =
                context.context.model().outputs().iter().map(|o| o.name.clone()).collect();
            ObjectHandle::new(Arc::new(V1Result::new(results, &order)))
        }));
        Ok(())
    })
}

/// # Safety
/// See [`super::trtc_v1_context_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_next_completed(
    context: ObjectHandle<V1Context>,
    wait: bool,
    id: *mut u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (context, place) = (context.get()?, unsafe { result_place(id, "id") }?);
        place.write(context.context.next_completed(wait)?.unwrap_or(0));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_cancel(context: ObjectHandle<V1Context>, id: u64) -> Error {
    guard_call(|| {
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
    context: ObjectHandle<V1Context>,
    statistics: *mut RawStatistics,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let place = unsafe { result_place(statistics, "statistics") }?;
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
