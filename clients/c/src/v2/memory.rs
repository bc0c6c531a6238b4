//! Shared-memory regions of a v2 server.

use super::client::{Error, V2Client, json_buffer};
use crate::arguments::{optional_text, read_array, read_text, result_place};
use crate::buffer::ByteBuffer;
use crate::failure::guard_call;
use crate::handle::ObjectHandle;
use std::ffi::c_char;
use trtserver_client::v2::Client;

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_register_system_memory(
    client: ObjectHandle<V2Client>,
    name: *const c_char,
    key: *const c_char,
    offset: u64,
    byte_size: u64,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (name, key) =
            unsafe { (read_text(name, "the region's name")?, read_text(key, "the key")?) };
        client.get()?.run(deadline_us, async |c: Client| {
            c.register_system_shared_memory(name, key, offset, byte_size).await
        })
    })
}

/// # Safety
/// See [`trtc_v2_register_system_memory`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_register_cuda_memory(
    client: ObjectHandle<V2Client>,
    name: *const c_char,
    handle: *const u8,
    handle_size: usize,
    device_id: i64,
    byte_size: u64,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (name, raw) = unsafe {
            (
                read_text(name, "the region's name")?,
                read_array(handle, handle_size, "the CUDA handle")?,
            )
        };
        client.get()?.run(deadline_us, async |c: Client| {
            c.register_cuda_shared_memory(name, raw, device_id, byte_size).await
        })
    })
}

/// # Safety
/// See [`trtc_v2_register_system_memory`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_unregister_system_memory(
    client: ObjectHandle<V2Client>,
    name: *const c_char,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let name = unsafe { optional_text(name, "the region's name") }?.unwrap_or_default();
        let request = async |c: Client| c.unregister_system_shared_memory(name).await;
        client.get()?.run(deadline_us, request)
    })
}

/// # Safety
/// See [`trtc_v2_register_system_memory`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_unregister_cuda_memory(
    client: ObjectHandle<V2Client>,
    name: *const c_char,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let name = unsafe { optional_text(name, "the region's name") }?.unwrap_or_default();
        let request = async |c: Client| c.unregister_cuda_shared_memory(name).await;
        client.get()?.run(deadline_us, request)
    })
}

/// # Safety
/// See [`trtc_v2_register_system_memory`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_system_memory_status(
    client: ObjectHandle<V2Client>,
    name: *const c_char,
    deadline_us: u64,
    json: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (name, place) =
            unsafe { (optional_text(name, "the region's name")?, result_place(json, "json")?) };
        let name = name.unwrap_or_default();
        let request = async |c: Client| c.system_shared_memory_status(name).await;
        place.write(json_buffer(&client.get()?.run(deadline_us, request)?));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_register_system_memory`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_cuda_memory_status(
    client: ObjectHandle<V2Client>,
    name: *const c_char,
    deadline_us: u64,
    json: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (name, place) =
            unsafe { (optional_text(name, "the region's name")?, result_place(json, "json")?) };
        let name = name.unwrap_or_default();
        let request = async |c: Client| c.cuda_shared_memory_status(name).await;
        place.write(json_buffer(&client.get()?.run(deadline_us, request)?));
        Ok(())
    })
}
