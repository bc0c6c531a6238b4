//! Who uses which version of which backend, for operators.

use super::ModelTable;
use crate::plugin::backend::{Backend, Facts};
use crate::plugin::model::Model;
use crate::plugin::{Backends, Isolation};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// The backend that a loaded version runs on. Does not keep it open.
pub struct BackendUse {
    /// As known when the model was open.
    pub facts: Facts,
    pub file: PathBuf,
    /// In a process of its own.
    pub isolated: bool,
    backend: Weak<Backend>,
}

/// A version of a backend and its models.
pub struct BackendStatus {
    pub facts: Facts,
    pub file: PathBuf,
    /// Where models run that do not say: in processes of their own?
    pub isolated: bool,
    /// Models that ask for no version get this one.
    pub default: bool,
    /// False: the file is gone or another, and no further model gets this one.
    pub installed: bool,
    /// Name, version, and whether it is in a process of its own.
    pub models: Vec<(String, i64, bool)>,
}

/// Versions of backends, and files that are none, with the reasons.
#[derive(Default)]
pub struct AllBackends {
    pub usable: Vec<BackendStatus>,
    pub unusable: Vec<(PathBuf, String)>,
}

impl BackendUse {
    pub fn of(model: &Model) -> Self {
        let backend = &model.backend;
        let facts = Facts { runtime: backend.runtime(), ..backend.facts.clone() };
        let (file, isolated) = (backend.path.clone(), model.is_apart());
        Self { facts, file, isolated, backend: Arc::downgrade(backend) }
    }

    /// Whether that is the backend that is used here.
    pub fn is(&self, backend: &Arc<Backend>) -> bool {
        std::ptr::eq(self.backend.as_ptr(), Arc::as_ptr(backend))
    }

    /// Where it runs, in a word or two of the log.
    pub fn place(&self) -> &'static str {
        if self.isolated { "isolated" } else { "in the server" }
    }
}

impl ModelTable {
    /// The backends that models are loaded with.
    pub fn set_backends(&self, backends: Arc<Backends>) {
        self.backends.store(Some(backends));
    }

    /// See [`AllBackends`]; empty before the backends were looked for.
    pub fn backends(&self) -> AllBackends {
        let Some(backends) = self.backends.load_full() else { return AllBackends::default() };
        let listed = backends.list().into_iter().map(|listed| {
            let status = BackendStatus {
                facts: listed.facts,
                file: listed.path,
                isolated: listed.isolation == Isolation::Process,
                default: listed.default,
                installed: true,
                models: Vec::new(),
            };
            (listed.in_use, status)
        });
        let mut usable: Vec<(Weak<Backend>, BackendStatus)> = listed.collect();
        let mut models: Vec<_> = self.all().into_values().collect();
        models.sort_by(|a, b| a.name.cmp(&b.name));
        for version in models.iter().flat_map(|model| model.versions.values()) {
            let Some(served) = version.served() else { continue };
            let Some(used) = &served.backend else { continue };
            let at = usable.iter().position(|(of, _)| of.ptr_eq(&used.backend));
            let at = at.unwrap_or_else(|| {
                let status = BackendStatus {
                    facts: used.facts.clone(),
                    file: used.file.clone(),
                    isolated: used.isolated,
                    default: false,
                    installed: false,
                    models: Vec::new(),
                };
                usable.push((used.backend.clone(), status));
                usable.len() - 1
            });
            let status = &mut usable[at].1;
            status.facts.runtime.clone_from(&used.facts.runtime);
            status.models.push((served.name.to_string(), served.version, used.isolated));
        }
        let unusable = backends.unusable().into_iter().map(|u| (u.path, u.error.message));
        let usable = usable.into_iter().map(|(_, status)| status).collect();
        AllBackends { usable, unusable: unusable.collect() }
    }
}
