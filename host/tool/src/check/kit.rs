//! State of the child process: the backend's table, the model to check with, and how to open them.

use super::execute::failure_text;
use super::exports;
use super::findings::Task;
use super::model::{BackendPlatforms, ModelPlan};
use super::process::Snapshot;
use super::search::{self, Batching};
use super::verdict::ScenarioVerdict;
use std::collections::BTreeMap;
use std::ptr::null_mut;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::BackendInfo;
use trtserver_plugin_api::abi::types::{Extension, Str};
use trtserver_plugin_host::Patch;
use trtserver_plugin_host::library;
use trtserver_plugin_host::text::{literal_view, read_text};
use trtserver_plugin_testkit::{
    self as testkit, Backend, Failure, Instance, InstanceSpec, Response,
};

pub struct Kit {
    pub task: Task,
    pub table: &'static BackendTable,
    pub platforms: BackendPlatforms,
    /// The state of the process before the library was loaded.
    pub before: Snapshot,
    /// The model to check with, or why there is none; `None` until it is first needed.
    plan: Option<Result<ModelPlan, String>>,
    pub batching: Batching,
    /// The response to the first request, if equal requests get equal responses.
    pub reference: Option<Response>,
}

impl Kit {
    pub fn new(task: Task, table: &'static BackendTable, before: Snapshot) -> Self {
        // SAFETY: the info was checked when the file was loaded.
        let platforms = unsafe { list_platforms(&*(table.backend_info)(null_mut())) };
        let batching = Batching::Refused("no model was opened".to_owned());
        Self { task, table, platforms, before, plan: None, batching, reference: None }
    }

    /// Checks of the file, after it was loaded.
    pub fn check_file(&self) -> Vec<(&'static str, ScenarioVerdict)> {
        let t = self.table;
        let BackendPlatforms { name, platforms, .. } = &self.platforms;
        // SAFETY: backend_info(null) may be called at any time, and what it returns is static.
        let (first, second) =
            unsafe { ((t.backend_info)(null_mut()), (t.backend_info)(null_mut())) };
        // SAFETY: the interface says that a pointer from `backend_info(null)` is null or leads to
        // static memory.
        let info = match unsafe { (first.as_ref(), second.as_ref()) } {
            (Some(first), Some(second)) => {
                // SAFETY: both pointers are not null, and the texts of a backend info live as long
                // as it does.
                let now = unsafe { (read_info(first), read_info(second)) };
                if now.0 != now.1 {
                    ScenarioVerdict::Broken(
                        "backend_info returns different values the second time".to_owned(),
                    )
                } else {
                    let platforms: Vec<&str> = platforms.iter().map(|p| &*p.0).collect();
                    ScenarioVerdict::Kept(format!(
                        "'{name}' {}, platforms: {}",
                        now.0.1,
                        platforms.join(", ")
                    ))
                }
            }
            _ => ScenarioVerdict::Broken("backend_info returned null".to_owned()),
        };
        vec![
            ("file.entry_symbol", ScenarioVerdict::kept()),
            ("file.interface", ScenarioVerdict::Kept(format!("{}.{}", t.abi_major, t.abi_minor))),
            ("file.entries", ScenarioVerdict::kept()),
            ("file.info", info),
            ("file.extensions", self.extensions()),
            ("file.exports", exports::check_exports(&self.task.file)),
        ]
    }

    /// Checks that unknown names and newer versions have no table. The listed extensions were
    /// checked with the file.
    fn extensions(&self) -> ScenarioVerdict {
        let Some(get) = self.table.get_extension else {
            return ScenarioVerdict::NotApplicable("it offers none".to_owned());
        };
        // SAFETY: the info is static, and was checked when the file was loaded.
        let offered = unsafe {
            let info = &*(self.table.backend_info)(null_mut());
            match (info.extensions.is_null(), info.n_extensions) {
                (true, _) | (_, 0) => &[],
                (false, n) => std::slice::from_raw_parts(info.extensions, n as usize),
            }
        };
        // SAFETY: the names are valid during the call.
        let find = |name, version| unsafe { !get(name, version).is_null() };
        if find(literal_view(c"trts.unknown"), 1) {
            return ScenarioVerdict::Broken(
                "get_extension returns a table for an unknown name".to_owned(),
            );
        }
        // SAFETY: the names are in the backend info, which is valid during this function.
        let named = |e: &Extension| unsafe { format!("'{}' {}", read_text(e.name), e.version) };
        if let Some(e) = offered.iter().find(|e| find(e.name, u32::MAX)) {
            let text = format!("get_extension returns {} for a newer version", named(e));
            return ScenarioVerdict::Broken(text);
        }
        ScenarioVerdict::Kept(offered.iter().map(named).collect::<Vec<_>>().join(", "))
    }

    pub fn open(&self) -> Result<Backend, Failure> {
        self.open_as(&self.platforms.name, &self.task.settings)
    }

    pub fn open_as(
        &self,
        name: &str,
        settings: &BTreeMap<String, String>,
    ) -> Result<Backend, Failure> {
        let settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (&**k, &**v)).collect();
        let dir = self.task.file.parent().unwrap_or(&self.task.file).to_string_lossy();
        Backend::open(self.table, name, &dir, &settings)
    }

    /// The model to check with. Without `--model`, the first model of the check that responds.
    pub fn plan(&mut self) -> Result<ModelPlan, String> {
        if let Some(found) = &self.plan {
            return found.clone();
        }
        let found = self.find();
        self.plan = Some(found.clone());
        found
    }

    /// The model to check with, or the verdict on what needs one.
    pub fn required_plan(&mut self) -> Result<ModelPlan, ScenarioVerdict> {
        self.plan().map_err(ScenarioVerdict::Untested)
    }

    /// Opens everything, runs `work` on an instance of the model, closes everything.
    pub fn with_instance<T>(&mut self, work: impl FnOnce(&Instance) -> T) -> Result<T, String> {
        let plan = self.plan()?;
        self.with_plan(&plan, work)
    }

    /// The same with another model.
    pub fn with_plan<T>(
        &self,
        plan: &ModelPlan,
        work: impl FnOnce(&Instance) -> T,
    ) -> Result<T, String> {
        let model = self
            .open()
            .and_then(|backend| backend.open_model(&plan.spec()))
            .map_err(failure_text)?;
        let instance = model.open_instance(&InstanceSpec::default()).map_err(failure_text)?;
        Ok(work(&instance))
    }

    fn find(&mut self) -> Result<ModelPlan, String> {
        let backend = self.open().map_err(|e| e.text)?;
        if let Some(dir) = &self.task.model {
            let plan = ModelPlan::from_dir(dir, &self.platforms, |bare| {
                match backend.autocomplete(&bare.spec()) {
                    None => Ok(None),
                    Some(Err(e)) => Err(e.text),
                    Some(Ok(patches)) => Ok(last_patch(patches)),
                }
            })?;
            self.batching = match plan.signature.max_batch_size {
                rows if plan.batches() && rows > 1 => Batching::Served,
                rows => Batching::Refused(format!(
                    "{} has max_batch_size {rows}: check with --model DIR of a model that batches, too",
                    plan.label
                )),
            };
            return Ok(plan);
        }
        if let Some(id) =
            ["model.open", "request.single"].into_iter().find(|id| self.task.failed.contains(*id))
        {
            return Err(format!("not reached: it needs '{id}'"));
        }
        let dir = self.task.scratch.join("check");
        let (plan, batching) = search::find_model(&backend, &dir, &self.platforms)?;
        self.batching = batching;
        Ok(plan)
    }
}

/// The last patch replaces earlier ones.
pub fn last_patch(mut patches: Vec<testkit::Patch>) -> Option<Patch> {
    patches.pop().map(|(format, data)| Patch { format, data })
}

/// # Safety
/// The info was checked.
unsafe fn list_platforms(info: &BackendInfo) -> BackendPlatforms {
    // SAFETY: by the caller's promise.
    let (name, _, platforms, files) = unsafe { read_info(info) };
    let files = files.into_iter().chain(std::iter::repeat(String::new()));
    let platforms = platforms.into_iter().zip(files).collect();
    BackendPlatforms { name, platforms, flags: info.flags }
}

type InfoFacts = (String, String, Vec<String>, Vec<String>);

/// Name, version, platforms and their files.
///
/// # Safety
/// The info was checked.
pub unsafe fn read_info(info: &BackendInfo) -> InfoFacts {
    let list = |p: *const Str, n: u32| -> Vec<String> {
        if p.is_null() {
            return Vec::new();
        }
        // SAFETY: by the caller's promise.
        unsafe { std::slice::from_raw_parts(p, n as usize).iter().map(|s| read_text(*s)).collect() }
    };
    let (platforms, files) =
        (list(info.platforms, info.n_platforms), list(info.default_files, info.n_platforms));
    // SAFETY: by the caller's promise.
    unsafe { (read_text(info.name), read_text(info.version), platforms, files) }
}

/// Compares the info of an open backend with that of its library. Returns the runtime.
///
/// # Safety
/// `info` comes from `backend_info`.
pub unsafe fn check_agreement(
    info: *const BackendInfo,
    platforms: &BackendPlatforms,
) -> Result<String, String> {
    // SAFETY: the caller promises null or an info from `backend_info`.
    unsafe { library::check_info(info) }?;
    // SAFETY: checked, and by the caller's promise.
    let info = unsafe { &*info };
    // SAFETY: the caller promises an info from `backend_info`, whose texts are valid as long as it
    // is.
    let (name, ..) = unsafe { read_info(info) };
    if name != platforms.name {
        return Err(format!(
            "its name is '{name}' when it is open, and '{}' before",
            platforms.name
        ));
    }
    // SAFETY: `runtime` is a text of the same info, which the caller keeps valid.
    Ok(unsafe { read_text(info.runtime) })
}
