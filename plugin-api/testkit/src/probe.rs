//! Asks a backend whether a directory holds a model of one of its platforms: the extension
//! `trts.model_probe`.

use crate::backend::{find_extension, take_error};
use crate::host::Failure;
use crate::report::report_violation;
use crate::text::{as_str, c_text, literal_str, read_str};
use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::extensions::{
    DirEntry, MODEL_PROBE_VERSION, ModelProbeExtension, NO_ENTRY, ProbeDesc,
};

/// Asks the backend, which need not be open, whether `version_dir` holds a model of `platform`.
/// Returns the recognised file or directory; `None` if the default file of the platform decides,
/// and without the extension.
///
/// # Errors
/// The backend says why the directory holds no model.
///
/// # Panics
/// The directory cannot be read.
pub fn probe(
    table: &BackendTable,
    platform: &str,
    version_dir: &Path,
) -> Result<Option<String>, Failure> {
    let Some(extension) = find_extension::<ModelProbeExtension>(
        table,
        literal_str(c"trts.model_probe"),
        MODEL_PROBE_VERSION,
    ) else {
        return Ok(None);
    };
    let entries =
        std::fs::read_dir(version_dir).unwrap_or_else(|e| panic!("{}: {e}", version_dir.display()));
    let mut entries: Vec<(String, bool)> = entries
        .flatten()
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path().is_dir()))
        .collect();
    entries.sort();
    let names: Vec<CString> = entries.iter().map(|(name, _)| c_text(name)).collect();
    let listed: Vec<DirEntry> = names
        .iter()
        .zip(&entries)
        .map(|(name, (_, is_dir))| DirEntry {
            name: as_str(name),
            is_dir: (*is_dir).into(),
            pad: 0,
        })
        .collect();
    let [name, dir, file] =
        ["m", &version_dir.to_string_lossy(), &default_file(table, platform)].map(c_text);
    let platform = c_text(platform);
    let desc = ProbeDesc {
        size: size_of::<ProbeDesc>() as u64,
        name: as_str(&name),
        version: 1,
        version_dir: as_str(&dir),
        platform: as_str(&platform),
        default_file: as_str(&file),
        entries: listed.as_ptr(),
        n_entries: listed.len() as u32,
        pad: 0,
        reserved: [0; 4],
    };
    let mut found = NO_ENTRY;
    // SAFETY: the descriptor and all that it points at live through the call.
    take_error(unsafe { (extension.model_probe)(&raw const desc, &raw mut found) }, "model_probe")?;
    let entry = entries.into_iter().nth(found as usize).map(|(name, _)| name);
    if found != NO_ENTRY && entry.is_none() {
        report_violation(
            "model.probe",
            format!("model_probe returned entry {found} of {}", listed.len()),
        );
    }
    Ok(entry)
}

fn default_file(table: &BackendTable, platform: &str) -> String {
    // SAFETY: the entry accepts null; the info and its texts are static.
    unsafe {
        let Some(info) = (table.backend_info)(null_mut()).as_ref() else { return String::new() };
        let position = (0..info.n_platforms as usize)
            .find(|&i| !info.platforms.is_null() && read_str(*info.platforms.add(i)) == platform);
        match position.filter(|_| !info.default_files.is_null()) {
            Some(i) => read_str(*info.default_files.add(i)),
            None => String::new(),
        }
    }
}
