//! `trtc_v2_client`: health, metadata, configuration, statistics, and the repository of the server.

use crate::arguments::{array, deadline, optional_text, result, text};
use crate::buffer::Buffer;
use crate::failure::{ErrorObject, Outcome, call, quiet};
use crate::handle::{Handle, Object};
use crate::settings::{RawSettings, settings};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trtserver_client::blocking::{self, Call};
use trtserver_client::v2::{Client, LoadOptions};
use trtserver_proto::json;
use trtserver_proto::schema::Described;

pub type Error = Handle<ErrorObject>;

pub struct V2Client {
    pub client: blocking::v2::Client,
    /// Opens streams, which run in the background.
    pub streams: Client,
    /// Asynchronous calls that have not completed.
    pub calls: Arc<Mutex<Calls>>,
    /// How long a stream is waited for.
    pub deadline: Option<Duration>,
}

#[derive(Default)]
pub struct Calls {
    pub last: u64,
    pub outstanding: BTreeMap<u64, Call>,
}

impl Object for V2Client {
    const NAME: &'static str = "v2 client";
}

impl V2Client {
    /// Runs one call of the server within its deadline.
    pub fn run<T>(
        &self,
        deadline_us: u64,
        request: impl AsyncFnOnce(Client) -> trtserver_client::Result<T>,
    ) -> Outcome<T> {
        Ok(match deadline(deadline_us) {
            Some(limit) => self.client.within(limit, request),
            None => self.client.call(request),
        }?)
    }

    pub fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response as the HTTP endpoint would send it.
pub fn json_buffer<M: Described>(message: &M) -> Buffer {
    Buffer::of(json::with_numbers(message))
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_client_new(
    raw: *const RawSettings,
    client: *mut Handle<V2Client>,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (settings, place) = unsafe { (settings(raw)?, result(client, "client")?) };
        place.write(Handle::new(Arc::new(V2Client {
            client: blocking::v2::Client::new(&settings)?,
            streams: Client::new(&settings)?,
            calls: Arc::default(),
            deadline: settings.call_deadline()?,
        })));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn trtc_v2_client_free(client: Handle<V2Client>) {
    quiet((), || drop(client.release()));
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_live(
    client: Handle<V2Client>,
    deadline_us: u64,
    live: *mut bool,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result(live, "live") }?);
        place.write(client.run(deadline_us, async |c: Client| c.is_live().await)?);
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_ready(
    client: Handle<V2Client>,
    deadline_us: u64,
    ready: *mut bool,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result(ready, "ready") }?);
        place.write(client.run(deadline_us, async |c: Client| c.is_ready().await)?);
        Ok(())
    })
}

/// Name and version of a model; the version is empty for the server's choice.
unsafe fn model_of<'a>(
    model: *const c_char,
    version: *const c_char,
) -> Outcome<(&'a str, &'a str)> {
    // SAFETY: the contract of the caller.
    let (model, version) =
        unsafe { (text(model, "the model's name")?, optional_text(version, "the version")?) };
    Ok((model, version.unwrap_or_default()))
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_model_ready(
    client: Handle<V2Client>,
    model: *const c_char,
    version: *const c_char,
    deadline_us: u64,
    ready: *mut bool,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let ((model, version), place) =
            unsafe { (model_of(model, version)?, result(ready, "ready")?) };
        let answer = async |c: Client| c.is_model_ready(model, version).await;
        place.write(client.get()?.run(deadline_us, answer)?);
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_server_metadata(
    client: Handle<V2Client>,
    deadline_us: u64,
    json: *mut Buffer,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result(json, "json") }?);
        let found = client.run(deadline_us, async |c: Client| c.server_metadata().await)?;
        place.write(json_buffer(&found));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_model_metadata(
    client: Handle<V2Client>,
    model: *const c_char,
    version: *const c_char,
    deadline_us: u64,
    json: *mut Buffer,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let ((model, version), place) =
            unsafe { (model_of(model, version)?, result(json, "json")?) };
        let request = async |c: Client| c.model_metadata(model, version).await;
        place.write(json_buffer(&client.get()?.run(deadline_us, request)?));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_model_config(
    client: Handle<V2Client>,
    model: *const c_char,
    version: *const c_char,
    deadline_us: u64,
    json: *mut Buffer,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let ((model, version), place) =
            unsafe { (model_of(model, version)?, result(json, "json")?) };
        let request = async |c: Client| c.model_config(model, version).await;
        place.write(Buffer::of(json::model_config(&client.get()?.run(deadline_us, request)?)));
        Ok(())
    })
}

/// # Safety
/// See [`trtc_v2_client_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_v2_statistics(
    client: Handle<V2Client>,
    model: *const c_char,
    version: *const c_char,
    deadline_us: u64,
    json: *mut Buffer,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (model, version, place) = unsafe {
            let model = optional_text(model, "the model's name")?.unwrap_or_default();
            let version = optional_text(version, "the version")?.unwrap_or_default();
            (model, version, result(json, "json")?)
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
    client: Handle<V2Client>,
    ready_only: bool,
    deadline_us: u64,
    json: *mut Buffer,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (client, place) = (client.get()?, unsafe { result(json, "json") }?);
        let request = async |c: Client| c.repository_index(ready_only).await;
        let index = client.run(deadline_us, request)?;
        // The HTTP endpoint sends the list itself.
        let object = json::with_numbers(&index);
        let list = object.strip_prefix("{\"models\":").and_then(|list| list.strip_suffix('}'));
        place.write(Buffer::of(list.unwrap_or(&object)));
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
    client: Handle<V2Client>,
    model: *const c_char,
    config: *const c_char,
    files: *const File,
    file_count: usize,
    deadline_us: u64,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let (model, config, raw) = unsafe {
            let config = optional_text(config, "the configuration")?;
            (text(model, "the model's name")?, config, array(files, file_count, "files")?)
        };
        let file = |file: &File| {
            // SAFETY: the contract of this function.
            let (path, data) = unsafe {
                (text(file.path, "the path of a file")?, array(file.data, file.size, "a file")?)
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
    client: Handle<V2Client>,
    model: *const c_char,
    unload_dependents: bool,
    deadline_us: u64,
) -> Error {
    call(|| {
        // SAFETY: the contract of this function.
        let model = unsafe { text(model, "the model's name") }?;
        let request = async |c: Client| c.unload(model, unload_dependents).await;
        client.get()?.run(deadline_us, request)
    })
}
