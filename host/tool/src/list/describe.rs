//! The description of one plugin file, read by a child process that loads, opens and closes the
//! backend.

use crate::subprocess;
use crate::subprocess::ReportPipe;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::ptr::null_mut;
use std::time::Duration;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::{BackendInfo, backend_flags};
use trtserver_plugin_api::abi::types::{Extension, Str};
use trtserver_plugin_host::PluginFile;
use trtserver_plugin_host::descriptors::CTexts;
use trtserver_plugin_host::host_api::scope::Scope;
use trtserver_plugin_host::library;
use trtserver_plugin_host::text::{c_text, read_text, str_view, take_error};

/// What a backend declares; fields are empty if the backend failed before.
#[derive(Default, Serialize, Deserialize)]
pub struct PluginDescription {
    #[serde(skip_serializing)]
    #[serde(default)]
    pub own_name: Option<String>,
    pub version: Option<String>,
    /// Framework and version, as the open backend reports it.
    pub runtime: Option<String>,
    /// The interface that it was built for.
    pub abi: Option<String>,
    #[serde(default)]
    pub platforms: Vec<String>,
    /// Default model files, in the order of the platforms.
    #[serde(default)]
    pub default_files: Vec<String>,
    #[serde(default)]
    /// Extensions that it offers, as `NAME VERSION`.
    pub extensions: Vec<String>,
    /// Extensions that it requires of a host.
    #[serde(default)]
    pub required_extensions: Vec<String>,
    /// It must run in a child process.
    pub must_isolate: Option<bool>,
}

impl PluginDescription {
    /// Replaces what an adapter declares for all its backends. Returns the name of an adapted
    /// backend.
    fn name_from_file(&mut self, file: &PluginFile) -> Option<String> {
        let adapted = file.adapted.as_ref()?;
        let version = self.version.take().unwrap_or_default();
        self.version = Some(format!("{}-{version}", adapted.adapter));
        (self.platforms, self.default_files) = (Vec::new(), Vec::new());
        Some(adapted.name.clone())
    }
}

/// A line from the child: the facts known so far, and the error.
#[derive(Serialize, Deserialize)]
struct DescriptionLine {
    /// `own_name`, which `facts` does not serialize.
    name: Option<String>,
    facts: PluginDescription,
    problem: Option<String>,
    done: bool,
}

/// Describes `file` in a child process. The text is the reason why the file cannot be used.
pub fn describe_plugin(
    file: &PluginFile,
    settings: &BTreeMap<String, String>,
    limit: Duration,
) -> Result<(PluginDescription, Option<String>), String> {
    let task = serde_json::to_string(&(file, settings)).map_err(|e| e.to_string())?;
    let args = ["plugin".into(), "list".into(), "--describe".into(), task.into()];
    let mut last: Option<DescriptionLine> = None;
    let ended = subprocess::run_child(&args, limit, |value| {
        last = serde_json::from_value(value).ok();
        false
    })?;
    let mut line = last.unwrap_or(DescriptionLine {
        name: None,
        facts: PluginDescription::default(),
        problem: None,
        done: false,
    });
    line.facts.own_name = line.name;
    if !line.done {
        let at = if line.facts.abi.is_some() {
            "while it opened or closed"
        } else {
            "while it was loaded"
        };
        line.problem = Some(format!("{at} it {}", ended.describe()));
    }
    Ok((line.facts, line.problem))
}

/// Runs the child process.
pub fn describe_in_child(task: &str) -> Result<ExitCode, String> {
    let pipe = ReportPipe::open()?;
    let (file, settings): (PluginFile, BTreeMap<String, String>) =
        serde_json::from_str(task).map_err(|e| e.to_string())?;
    let mut line = DescriptionLine {
        name: None,
        facts: PluginDescription::default(),
        problem: None,
        done: false,
    };
    match library::enter_library(&file.library, trtserver_plugin_host::host_table()) {
        Err(refusal) => {
            line.facts.abi = refusal.abi.map(|(major, minor)| format!("{major}.{minor}"));
            line.problem = Some(refusal.why);
        }
        Ok(table) => {
            // SAFETY: `enter` checked the table; the info without a backend is static.
            let name =
                unsafe { copy_info(&mut line.facts, table, (table.backend_info)(null_mut())) };
            let name = line.facts.name_from_file(&file).unwrap_or(name);
            line.name = Some(name.clone());
            // Sent before opening, which may crash.
            pipe.send(&line);
            line.problem = open(&file, table, &name, &settings, &mut line.facts).err();
        }
    }
    line.done = true;
    pipe.send(&line);
    Ok(ExitCode::SUCCESS)
}

/// Opens and closes the backend, since the framework is known only while it is open.
fn open(
    file: &PluginFile,
    table: &'static BackendTable,
    name: &str,
    settings: &BTreeMap<String, String>,
    facts: &mut PluginDescription,
) -> Result<(), String> {
    let scope = Scope::for_backend(name);
    let path = file.path();
    let (name, dir) = (c_text(name), c_text(&path.parent().unwrap_or(path).to_string_lossy()));
    let (settings, mut handle) = (CTexts::new(settings), null_mut());
    let params = settings.params();
    // SAFETY: all texts are valid during the call, the scope until after `backend_close`; the
    // result is null or an error made by the host.
    let opened = unsafe {
        let (scope, n) = (scope.handle(), params.len() as u32);
        take_error((table.backend_open)(
            scope,
            str_view(&name),
            str_view(&dir),
            params.as_ptr(),
            n,
            &mut handle,
        ))
    };
    opened.map_err(|e| format!("it does not open: {}", e.text.to_string_lossy()))?;
    // SAFETY: the backend is open, and closed once, here; its info is read before.
    unsafe {
        let info = (table.backend_info)(handle);
        if library::check_info(info).is_ok() {
            copy_info(facts, table, info);
            facts.name_from_file(file);
        }
        (table.backend_close)(handle);
    }
    Ok(())
}

/// Copies a backend info into `facts`; returns the name.
///
/// # Safety
/// `info` passed `check_info` and is valid during the call.
unsafe fn copy_info(
    facts: &mut PluginDescription,
    table: &BackendTable,
    info: *const BackendInfo,
) -> String {
    // SAFETY: by the caller's promise the info was checked, and it and its texts are valid.
    unsafe {
        let info = &*info;
        let list = |p: *const Str, n: u32| -> Vec<String> {
            if p.is_null() {
                return Vec::new();
            }
            std::slice::from_raw_parts(p, n as usize).iter().map(|s| read_text(*s)).collect()
        };
        let extensions = |p: *const Extension, n: u32| -> Vec<String> {
            if p.is_null() {
                return Vec::new();
            }
            let all = std::slice::from_raw_parts(p, n as usize).iter();
            all.map(|e| format!("{} {}", read_text(e.name), e.version)).collect()
        };
        let some = |text: Str| Some(read_text(text)).filter(|t| !t.is_empty());
        *facts = PluginDescription {
            own_name: None,
            version: some(info.version),
            runtime: some(info.runtime).or(facts.runtime.take()),
            abi: Some(format!("{}.{}", table.abi_major, table.abi_minor)),
            platforms: list(info.platforms, info.n_platforms),
            default_files: list(info.default_files, info.n_platforms),
            extensions: extensions(info.extensions, info.n_extensions),
            required_extensions: extensions(info.required_extensions, info.n_required_extensions),
            must_isolate: Some(info.flags & backend_flags::MUST_ISOLATE != 0),
        };
        read_text(info.name)
    }
}
