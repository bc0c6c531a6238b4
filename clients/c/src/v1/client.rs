//! `trtc_v1_client`: health, status, repository, models, shared memory and profiler.

use crate::arguments::{optional_text, read_array, read_deadline, read_text, result_place};
use crate::buffer::ByteBuffer;
use crate::failure::{ErrorObject, Outcome, guard_call, ignore_panic};
use crate::handle::{HandleObject, ObjectHandle};
use crate::settings::{RawSettings, read_settings};
use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trtserver_client::blocking;
use trtserver_client::v1::{Client, Response};

type Error = ObjectHandle<ErrorObject>;

pub struct V1Client {
    client: blocking::v1::BlockingClient,
    last_request_id: AtomicU64,
}

impl HandleObject for V1Client {
    const NAME: &'static str = "v1 client";
}

impl V1Client {
    /// Runs one call of the server within its deadline.
    fn run<T>(
        &self,
        deadline_us: u64,
        request: impl AsyncFnOnce(Client) -> trtserver_client::Result<Response<T>>,
    ) -> Outcome<T> {
        let outcome = match read_deadline(deadline_us) {
            Some(limit) => self.client.within(limit, request),
            None => self.client.call(request),
        };
        let id = outcome.as_ref().map_or_else(|e| e.request_id(), |response| response.request_id);
        if id != 0 {
            self.last_request_id.store(id, Ordering::Relaxed);
        }
        Ok(outcome?.value)
    }
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_client_new(
    raw: *const RawSettings,
    client: *mut ObjectHandle<V1Client>,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (settings, place) = unsafe { (read_settings(raw)?, result_place(client, "client")?) };
        let client = blocking::v1::BlockingClient::new(&settings)?;
        let last_request_id = AtomicU64::new(0);
        place.write(ObjectHandle::new(Arc::new(V1Client { client, last_request_id })));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_client_free(client: ObjectHandle<V1Client>) {
    ignore_panic((), || drop(client.release()));
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_client_last_request_id(client: ObjectHandle<V1Client>) -> u64 {
    ignore_panic(0, || client.find().map_or(0, |c| c.last_request_id.load(Ordering::Relaxed)))
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_live(
    client: ObjectHandle<V1Client>,
    deadline_us: u64,
    live: *mut bool,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result_place(live, "live") }?);
        place.write(client.run(deadline_us, async |c: Client| c.is_live().await)?);
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_ready(
    client: ObjectHandle<V1Client>,
    deadline_us: u64,
    ready: *mut bool,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result_place(ready, "ready") }?);
        place.write(client.run(deadline_us, async |c: Client| c.is_ready().await)?);
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_status(
    client: ObjectHandle<V1Client>,
    model: *const c_char,
    deadline_us: u64,
    status: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        let client = client.get()?;
        // SAFETY: the contract of this function.
        let (model, place) =
            unsafe { (optional_text(model, "the model's name")?, result_place(status, "status")?) };
        let found = client.run(deadline_us, async |c: Client| c.status(model).await)?;
        place.write(ByteBuffer::message(&found)?);
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_repository_index(
    client: ObjectHandle<V1Client>,
    deadline_us: u64,
    index: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result_place(index, "index") }?);
        let found = client.run(deadline_us, async |c: Client| c.repository_index().await)?;
        place.write(ByteBuffer::message(&found)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v1_profile(
    client: ObjectHandle<V1Client>,
    start: bool,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        client.get()?.run(deadline_us, async |c: Client| {
            if start { c.start_profile().await } else { c.stop_profile().await }
        })
    })
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_load_model(
    client: ObjectHandle<V1Client>,
    model: *const c_char,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (client, model) = (client.get()?, unsafe { read_text(model, "the model's name") }?);
        client.run(deadline_us, async |c: Client| c.load(model).await)
    })
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_unload_model(
    client: ObjectHandle<V1Client>,
    model: *const c_char,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (client, model) = (client.get()?, unsafe { read_text(model, "the model's name") }?);
        client.run(deadline_us, async |c: Client| c.unload(model).await)
    })
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_register_system_memory(
    client: ObjectHandle<V1Client>,
    name: *const c_char,
    key: *const c_char,
    offset: u64,
    byte_size: u64,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        let client = client.get()?;
        // SAFETY: the contract of this function.
        let (name, key) =
            unsafe { (read_text(name, "the region's name")?, read_text(key, "the key")?) };
        client.run(deadline_us, async |c: Client| {
            c.register_system_shared_memory(name, key, offset, byte_size).await
        })
    })
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_register_cuda_memory(
    client: ObjectHandle<V1Client>,
    name: *const c_char,
    handle: *const u8,
    handle_size: usize,
    byte_size: u64,
    device_id: i64,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        let client = client.get()?;
        // SAFETY: the contract of this function.
        let (name, raw) = unsafe {
            (
                read_text(name, "the region's name")?,
                read_array(handle, handle_size, "the CUDA handle")?,
            )
        };
        client.run(deadline_us, async |c: Client| {
            c.register_cuda_shared_memory(name, raw, byte_size, device_id).await
        })
    })
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_unregister_memory(
    client: ObjectHandle<V1Client>,
    name: *const c_char,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        let client = client.get()?;
        // SAFETY: the contract of this function.
        let name = unsafe { optional_text(name, "the region's name") }?;
        client.run(deadline_us, async |c: Client| match name {
            Some(name) => c.unregister_shared_memory(name).await,
            None => c.unregister_all_shared_memory().await,
        })
    })
}

/// # Safety
/// See [`trtc_v1_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v1_memory_status(
    client: ObjectHandle<V1Client>,
    deadline_us: u64,
    status: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result_place(status, "status") }?);
        let found = client.run(deadline_us, async |c: Client| c.shared_memory_status().await)?;
        place.write(ByteBuffer::message(&found)?);
        Ok(())
    })
}
