//! `trtc_settings` as the settings of a client.

use crate::arguments::{optional_text, read_array, read_deadline, read_struct, read_text};
use crate::failure::{ClientFailure, Outcome};
use std::ffi::c_char;
use trtserver_client::{Compression, Protocol, Settings, Tls};

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Header {
    name: *const c_char,
    value: *const c_char,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawSettings {
    struct_size: usize,
    url: *const c_char,
    protocol: i32,
    compression: i32,
    headers: *const Header,
    header_count: usize,
    deadline_us: u64,
    verbose: bool,
    tls: bool,
    tls_insecure: bool,
    tls_ca_file: *const c_char,
    tls_certificate_file: *const c_char,
    tls_key_file: *const c_char,
}

/// # Safety
/// `raw` is NULL or points to settings as the header describes them.
#[expect(clippy::undocumented_unsafe_blocks, reason = "all rest on the contract of the function")]
pub unsafe fn read_settings(raw: *const RawSettings) -> Outcome<Settings> {
    // SAFETY: every block of this function rests on its contract: the caller passes NULL or
    // settings whose pointers are as the header describes them.
    let raw = unsafe { read_struct(raw, "settings") }?;
    let mut settings = Settings::new(unsafe { read_text(raw.url, "the URL") }?);
    settings.protocol = match raw.protocol {
        0 => Protocol::Http,
        1 => Protocol::Grpc,
        other => return Err(ClientFailure::argument(format!("protocol {other} is unknown"))),
    };
    settings.compression = match raw.compression {
        0 => None,
        1 => Some(Compression::Deflate),
        2 => Some(Compression::Gzip),
        other => return Err(ClientFailure::argument(format!("compression {other} is unknown"))),
    };
    settings.headers = unsafe { read_headers(raw.headers, raw.header_count) }?;
    if let Some(deadline) = read_deadline(raw.deadline_us) {
        settings.deadline = deadline.into();
    }
    settings.verbose = raw.verbose;
    settings.tls = unsafe { read_tls(&raw) }?;
    Ok(settings)
}

/// # Safety
/// `headers` points to `count` headers.
pub unsafe fn read_headers(headers: *const Header, count: usize) -> Outcome<Vec<(String, String)>> {
    // SAFETY: the contract of this function.
    let headers = unsafe { read_array(headers, count, "headers") }?;
    let pair = |header: &Header| {
        // SAFETY: the caller of this function promises headers whose name is NULL or a C string.
        let name = unsafe { read_text(header.name, "the name of a header") }?;
        // SAFETY: the caller of this function promises headers whose value is NULL or a C string.
        let value = unsafe { read_text(header.value, "the value of a header") }?;
        Ok((name.to_owned(), value.to_owned()))
    };
    headers.iter().map(pair).collect()
}

unsafe fn read_tls(raw: &RawSettings) -> Outcome<Option<Tls>> {
    let file = |path: *const c_char, what: &str| -> Outcome<Option<Vec<u8>>> {
        // SAFETY: the contract of `settings`.
        let Some(path) = (unsafe { optional_text(path, what) })? else { return Ok(None) };
        let read = std::fs::read(path);
        read.map(Some).map_err(|e| ClientFailure::File(format!("cannot read {what} {path}: {e}")))
    };
    let mut tls = Tls::default();
    tls.authorities = file(raw.tls_ca_file, "tls_ca_file")?;
    tls.certificate = file(raw.tls_certificate_file, "tls_certificate_file")?;
    tls.key = file(raw.tls_key_file, "tls_key_file")?;
    tls.insecure = raw.tls_insecure;
    let given = tls.authorities.is_some() || tls.certificate.is_some() || tls.key.is_some();
    Ok((raw.tls || raw.tls_insecure || given).then_some(tls))
}
