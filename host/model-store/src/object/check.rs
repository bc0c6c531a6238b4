//! `trtserver store check`: credentials and calls of an object store, one by one.

use super::super::credentials::{CredentialEnvironment, CredentialSources};
use super::super::location::ObjectUrl;
use super::StoreRuntime;
use super::client::connect_in;
use super::message;
use object_store::{GetOptions, GetRange, ObjectStore};
use std::io::{self, Write};
use std::time::Duration;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Error, Result};

/// Prints the sources of credentials, and makes the calls that a load makes. False if one is
/// refused.
///
/// # Errors
/// `out` cannot be written, or the system starts no threads.
pub fn check_object_store(
    url: &ObjectUrl,
    timeout: Duration,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let runtime = StoreRuntime::start()?;
    writeln!(out, "repository {url}\ncredentials")?;
    let mut sources = CredentialSources::default();
    let client = connect_in(url, timeout, &CredentialEnvironment::from_process(), &mut sources);
    for tried in &sources.0 {
        writeln!(out, "  {tried}")?;
    }
    let client = match client {
        Ok(client) => client,
        Err(e) => {
            writeln!(out, "  REFUSED: {e}")?;
            return Ok(false);
        }
    };
    writeln!(out, "calls")?;
    let never = CancelFlag::default();
    let models = runtime.run(&never, || (), async { client.models().await });
    let Some(models) = report_step(out, models, |models| {
        format!("list {url}/: {} models: {}", models.len(), models.join(", "))
    })?
    else {
        return Ok(false);
    };
    let Some(model) = models.first() else {
        writeln!(out, "no model: nothing more to check")?;
        return Ok(true);
    };
    let files =
        runtime.run(&never, || (), async { client.objects(model).await?.into_entries(model) });
    let Some(files) = report_step(out, files, |files| {
        let bytes: u64 = files.iter().map(|file| file.object.size).sum();
        format!("list {url}/{model}/: {} files, {bytes} bytes", files.len())
    })?
    else {
        return Ok(false);
    };
    // A range of it: what the server reads models with.
    let Some(file) = files.iter().find(|file| file.object.size > 0) else { return Ok(true) };
    let path = format!("{url}/{model}/{}", file.path);
    let read = runtime.run(&never, || (), async {
        let range = Some(GetRange::Bounded(0..file.object.size.min(1024)));
        let if_match = file.object.e_tag.clone();
        let options = GetOptions { range, if_match, ..GetOptions::default() };
        let read =
            async { client.store.get_opts(&file.object.location, options).await?.bytes().await };
        read.await.map_err(|e| {
            Error::internal(format!("read {path}: {}", message::describe_store_error(&e)))
        })
    });
    Ok(report_step(out, read, |bytes| format!("read {path}: {} bytes", bytes.len()))?.is_some())
}

/// Prints a call and its result.
fn report_step<T>(
    out: &mut dyn Write,
    result: Result<T>,
    text: impl FnOnce(&T) -> String,
) -> io::Result<Option<T>> {
    match result {
        Ok(done) => {
            writeln!(out, "  {}", text(&done))?;
            Ok(Some(done))
        }
        Err(e) => {
            writeln!(out, "  REFUSED: {e}")?;
            Ok(None)
        }
    }
}
