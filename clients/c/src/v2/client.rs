//! `trtc_v2_client`: health, metadata, configuration, statistics, and the repository of the server.

use crate::arguments::{optional_text, read_array, read_deadline, read_text, result_place};
use crate::buffer::ByteBuffer;
use crate::failure::{ErrorObject, Outcome, guard_call, ignore_panic};
use crate::handle::{HandleObject, ObjectHandle};
use crate::settings::{RawSettings, read_settings};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trtserver_client::blocking::{self, Call};
use trtserver_client::v2::{Client, LoadOptions};
use trtserver_proto::json;
use trtserver_proto::schema::Described;

pub type Error = ObjectHandle<ErrorObject>;

pub struct V2Client {
    pub client: blocking::v2::BlockingClient,
    /// Opens streams, which run in the background.
    pub streams: Client,
    /// Asynchronous calls that have not completed.
    pub calls: Arc<Mutex<CallRegistry>>,
    /// How long a stream is waited for.
    pub deadline: Option<Duration>,
}

#[derive(Default)]
pub struct CallRegistry {
    pub last: u64,
    pub outstanding: BTreeMap<u64, Call>,
}

impl HandleObject for V2Client {
    const NAME: &'static str = "v2 client";
}

impl V2Client {
    /// Runs one call of the server within its deadline.
    pub fn run<T>(
        &self,
        deadline_us: u64,
        request: impl AsyncFnOnce(Client) -> trtserver_client::Result<T>,
    ) -> Outcome<T> {
        Ok(match read_deadline(deadline_us) {
            Some(limit) => self.client.within(limit, request),
            None => self.client.call(request),
        }?)
    }

    pub fn calls(&self) -> MutexGuard<'_, CallRegistry> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response as the HTTP endpoint would send it.
pub fn json_buffer<M: Described>(message: &M) -> ByteBuffer {
    ByteBuffer::from_bytes(json::with_numbers(message))
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_client_new(
    raw: *const RawSettings,
    client: *mut ObjectHandle<V2Client>,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (settings, place) = unsafe { (read_settings(raw)?, result_place(client, "client")?) };
        place.write(ObjectHandle::new(Arc::new(V2Client {
            client: blocking::v2::BlockingClient::new(&settings)?,
            streams: Client::new(&settings)?,
            calls: Arc::default(),
            deadline: settings.call_deadline()?,
        })));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v2_client_free(client: ObjectHandle<V2Client>) {
    ignore_panic((), || drop(client.release()));
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_live(
    client: ObjectHandle<V2Client>,
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
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_ready(
    client: ObjectHandle<V2Client>,
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

/// Name and version of a model; the version is empty for the server's choice.
unsafe fn read_model<'a>(
    model: *const c_char,
    version: *const c_char,
) -> Outcome<(&'a str, &'a str)> {
    // SAFETY: the contract of the caller.
    let (model, version) =
        unsafe { (read_text(model, "the model's name")?, optional_text(version, "the version")?) };
    Ok((model, version.unwrap_or_default()))
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_model_ready(
    client: ObjectHandle<V2Client>,
    model: *const c_char,
    version: *const c_char,
    deadline_us: u64,
    ready: *mut bool,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let ((model, version), place) =
            unsafe { (read_model(model, version)?, result_place(ready, "ready")?) };
        let answer = async |c: Client| c.is_model_ready(model, version).await;
        place.write(client.get()?.run(deadline_us, answer)?);
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_server_metadata(
    client: ObjectHandle<V2Client>,
    deadline_us: u64,
    json: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result_place(json, "json") }?);
        let found = client.run(deadline_us, async |c: Client| c.server_metadata().await)?;
        place.write(json_buffer(&found));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_model_metadata(
    client: ObjectHandle<V2Client>,
    model: *const c_char,
    version: *const c_char,
    deadline_us: u64,
    json: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let ((model, version), place) =
            unsafe { (read_model(model, version)?, result_place(json, "json")?) };
        let request = async |c: Client| c.model_metadata(model, version).await;
        place.write(json_buffer(&client.get()?.run(deadline_us, request)?));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_model_config(
    client: ObjectHandle<V2Client>,
    model: *const c_char,
    version: *const c_char,
    deadline_us: u64,
    json: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let ((model, version), place) =
            unsafe { (read_model(model, version)?, result_place(json, "json")?) };
        let request = async |c: Client| c.model_config(model, version).await;
        place.write(ByteBuffer::from_bytes(json::model_config(
            &client.get()?.run(deadline_us, request)?,
        )));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_statistics(
    client: ObjectHandle<V2Client>,
    model: *const c_char,
    version: *const c_char,
    deadline_us: u64,
    json: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (model, version, place) = unsafe {
            let model = optional_text(model, "the model's name")?.unwrap_or_default();
            let version = optional_text(version, "the version")?.unwrap_or_default();
            (model, version, result_place(json, "json")?)
        };
        let request = async |c: Client| c.statistics(model, version).await;
        place.write(json_buffer(&client.get()?.run(deadline_us, request)?));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_repository_index(
    client: ObjectHandle<V2Client>,
    ready_only: bool,
    deadline_us: u64,
    json: *mut ByteBuffer,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result_place(json, "json") }?);
        let request = async |c: Client| c.repository_index(ready_only).await;
        let index = client.run(deadline_us, request)?;
        // The HTTP endpoint sends the list itself.
        let object = json::with_numbers(&index);
        let list = object.strip_prefix("{\"models\":").and_then(|list| list.strip_suffix('}'));
        place.write(ByteBuffer::from_bytes(list.unwrap_or(&object)));
        Ok(())
    })
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct File {
    path: *const c_char,
    data: *const u8,
    size: usize,
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_load_model(
    client: ObjectHandle<V2Client>,
    model: *const c_char,
    config: *const c_char,
    files: *const File,
    file_count: usize,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (model, config, raw) = unsafe {
            let config = optional_text(config, "the configuration")?;
            (read_text(model, "the model's name")?, config, read_array(files, file_count, "files")?)
        };
        let file = |file: &File| {
            // SAFETY: the contract of this function.
            let (path, data) = unsafe {
                (
                    read_text(file.path, "the path of a file")?,
                    read_array(file.data, file.size, "a file")?,
                )
            };
            Ok((path.to_owned(), Bytes::copy_from_slice(data)))
        };
        let files = raw.iter().map(file).collect::<Outcome<_>>()?;
        let options = LoadOptions { config: config.map(str::to_owned), files };
        client.get()?.run(deadline_us, async |c: Client| c.load(model, &options).await)
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_unload_model(
    client: ObjectHandle<V2Client>,
    model: *const c_char,
    unload_dependents: bool,
    deadline_us: u64,
) -> Error {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let model = unsafe { read_text(model, "the model's name") }?;
        let request = async |c: Client| c.unload(model, unload_dependents).await;
        client.get()?.run(deadline_us, request)
    })
}
