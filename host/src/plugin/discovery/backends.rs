//! All backends of this server, in all versions that lie in its directories; which of them a model gets.
//!
//! The directories are listed again before a model is loaded. What is new is opened beside what is there: a model gets
//! the newest version, or the one that it asks for, and keeps it. A file that is gone, or has another in its place, is
//! used by the models that have it and by no other. What cannot be opened is told, and left out until it changes.

use super::directories::{self, Candidate, Listing};
use super::inventory::{Installed, Known, Unusable, stamps};
use super::version;
use crate::error::{Error, Result};
use crate::plugin::backend::{Backend, Facts};
use crate::plugin::isolation::Isolation;
use crate::plugin::library;
use crate::plugin::library::file::{Stamp, check_whole};
use crate::repository::config::Platforms;
use crate::sync::Mutex;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use trtserver_proto::v2::ModelConfig;

/// The model parameter that asks for a version.
pub const VERSION_PARAMETER: &str = "backend_version";
/// The backend setting with the version for models that ask for none. The host's, not the plugin's.
const VERSION_SETTING: &str = "version";

/// See the module text.
pub struct Backends {
    dirs: Vec<PathBuf>,
    /// By backend name; the empty name is for all.
    settings: BTreeMap<String, BTreeMap<String, String>>,
    /// One look at the directories at a time: opening a library takes its time.
    looking: Mutex<()>,
    known: ArcSwap<Known>,
}

/// A version of a backend, for those who ask what is installed.
pub struct Listed {
    pub facts: Facts,
    pub path: PathBuf,
    /// Where its models run unless they say otherwise.
    pub isolation: Isolation,
    /// Models that ask for no version get this one.
    pub default: bool,
    /// What its models share, if there are any.
    pub in_use: Weak<Backend>,
}

impl Backends {
    /// Opens every backend below `dirs`. `settings` by backend name; the empty name is for all.
    ///
    /// A file that cannot be opened is logged and left out: it must not take the others down.
    ///
    /// # Errors
    /// A directory cannot be read; a `plugin.toml` is malformed; two files claim one version of one name, two
    /// backends one platform.
    pub fn open(
        dirs: &[PathBuf],
        settings: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> Result<Self> {
        let mut settings = settings.clone();
        let mut wanted = BTreeMap::new();
        for (name, chosen) in settings.iter_mut().filter(|(name, _)| !name.is_empty()) {
            wanted.extend(chosen.remove(VERSION_SETTING).map(|version| (name.clone(), version)));
        }
        let known = Known { wanted: Arc::new(wanted), ..Known::default() };
        let looking = Mutex::new(());
        let backends = Self { dirs: dirs.to_vec(), settings, looking, known: ArcSwap::default() };
        let listing = directories::look(dirs);
        if let Some((_, e)) = listing.unread.first() {
            return Err(e.clone());
        }
        if let Some((_, e)) = listing.unsettled.first() {
            return Err(e.clone());
        }
        let known = backends.compare(listing, &known, true)?;
        for name in backends.settings.keys().filter(|n| !n.is_empty()) {
            if known.usual(name).is_none() {
                tracing::warn!("--backend-config names backend '{name}', which is not installed");
            }
        }
        backends.known.store(Arc::new(known));
        Ok(backends)
    }

    /// Looks what has changed in the directories. What was found stays where they cannot be read, and nothing that is
    /// new and wrong disturbs what is there.
    pub fn refresh(&self) {
        let _one = self.looking.lock();
        let before = self.known.load_full();
        let listing = directories::look(&self.dirs);
        for (_, e) in &listing.unread {
            tracing::warn!("{e}; its backends are used as they were");
        }
        match self.compare(listing, &before, false) {
            Ok(known) => self.known.store(Arc::new(known)),
            Err(e) => tracing::error!("{e}"),
        }
    }

    /// What is there now, given what was known before. At the start a clash is an error, later it only keeps the
    /// newcomer out.
    fn compare(&self, listing: Listing, before: &Known, at_start: bool) -> Result<Known> {
        let mut now = Known { wanted: Arc::clone(&before.wanted), ..Known::default() };
        let mut news = Vec::new();
        for (candidate, e) in listing.unsettled {
            // Settings are read with the library: one that is there needs its file no more.
            let known = Stamp::of(&candidate.path).ok().and_then(|stamp| before.known(&stamp));
            match known {
                Some(known) => now.usable.push(Arc::clone(known)),
                None => now.leave_out(before, &candidate, false, e),
            }
        }
        for candidate in listing.candidates {
            let stamps = stamps(&candidate.path);
            // Else it has gone since the directory was listed.
            let [Some(stamp), _] = stamps else { continue };
            let is_still = |u: &&Unusable| !u.clashes && u.is_still(&candidate.path, &stamps);
            let is_it = |(_, other): &(Candidate, Stamp)| *other == stamp;
            if now.known(&stamp).is_some() || news.iter().any(is_it) {
                // Another name of the same file.
            } else if let Some(known) = before.known(&stamp) {
                now.usable.push(Arc::clone(known));
            } else if let Some(known) = before.unusable.iter().find(is_still) {
                now.unusable.push(known.clone());
            } else {
                news.push((candidate, stamp));
            }
        }
        for (dir, _) in listing.unread {
            let lost = before.usable.iter().filter(|i| i.backend.path.starts_with(&dir));
            let lost: Vec<_> = lost.filter(|i| now.known(&i.stamp).is_none()).cloned().collect();
            now.usable.extend(lost);
        }
        for gone in before.usable.iter().filter(|i| now.known(&i.stamp).is_none()) {
            let (name, version, file) = (gone.name(), gone.version(), gone.backend.path.display());
            tracing::info!(
                "the file of backend '{name}' {version}, {file}, is gone or another; models that have it keep it"
            );
        }
        now.sort();
        let mut opened = Vec::new();
        for (candidate, stamp) in news {
            match self.install(candidate.clone(), stamp) {
                Ok(installed) => opened.push((candidate, installed)),
                Err(e) => now.leave_out(before, &candidate, false, e),
            }
        }
        opened.sort_by(|(_, a), (_, b)| version::compare(b.version(), a.version()));
        for (candidate, installed) in opened {
            let (name, version) = (installed.name().to_owned(), installed.version().to_owned());
            match now.admit(Arc::new(installed)) {
                Ok(()) => {
                    let file = candidate.path.display();
                    tracing::info!("found backend '{name}' {version} in {file}");
                }
                Err(e) if at_start => return Err(e),
                Err(e) => now.leave_out(before, &candidate, true, e),
            }
        }
        Ok(now)
    }

    fn install(&self, candidate: Candidate, stamp: Stamp) -> Result<Installed> {
        let path = candidate.path.clone();
        check_whole(&path).map_err(|why| library::refused(&path, why))?;
        let mut chosen = self.settings.get("").cloned().unwrap_or_default();
        chosen.extend(self.settings.get(&candidate.name).cloned().unwrap_or_default());
        let dir = candidate.version.clone();
        let backend = Backend::load(candidate, stamp, &chosen)?;
        let declared = &backend.facts.version;
        if let Some(dir) = dir.filter(|dir| !version::fits(declared, dir)) {
            tracing::warn!(
                "backend '{}' says that it is version '{declared}', though it lies in a directory '{dir}'; the \
                 former counts",
                path.display()
            );
        }
        Ok(Installed { stamp, backend, in_use: Mutex::default() })
    }

    /// The backend for a model: the version that it asks for (parameter `backend_version`), else the one that the
    /// operator has chosen for all models, else the newest.
    ///
    /// # Errors
    /// Nothing of that name, or no such version, is usable; says what is there, and why not what is not.
    pub fn for_model(&self, config: &ModelConfig) -> Result<Arc<Backend>> {
        let known = self.known.load();
        let (model, name) = (&config.name, &config.backend);
        let asked = config.parameters.get(VERSION_PARAMETER).map(|value| &value.string_value);
        let (wanted, by) = match (asked, known.wanted.get(name)) {
            (Some(version), _) => (Some(version), format!("parameter '{VERSION_PARAMETER}'")),
            (None, version) => (version, format!("--backend-config={name},{VERSION_SETTING}=…")),
        };
        let found = match wanted {
            Some(wanted) => known.version(name, wanted),
            None => known.versions(name).next(),
        };
        if let Some(found) = found {
            return Ok(found.shared());
        }
        let Some(wanted) = wanted.filter(|_| known.usual(name).is_some()) else {
            return Err(Error::unsupported(format!(
                "backend '{name}' of model '{model}' is not there"
            )));
        };
        let there: Vec<_> = known.versions(name).map(|i| format!("'{}'", i.version())).collect();
        let mut text = format!(
            "model '{model}' wants version '{wanted}' of backend '{name}' ({by}), which is not there; there is {}",
            there.join(", ")
        );
        for broken in known.unusable.iter().filter(|u| u.name == *name) {
            text.push_str(&format!("; not usable: {}", broken.error));
        }
        Err(Error::unsupported(text))
    }

    /// The version of a backend that models get which ask for none.
    pub fn get(&self, name: &str) -> Option<Arc<Backend>> {
        self.known.load().usual(name).map(|i| i.shared())
    }

    /// Files that look like backends and are none.
    pub fn unusable(&self) -> Vec<Unusable> {
        self.known.load().unusable.clone()
    }

    /// What can be used, by name, the newest version of each first.
    pub fn list(&self) -> Vec<Listed> {
        let known = self.known.load();
        let listed = known.usable.iter().map(|i| Listed {
            facts: i.backend.facts.clone(),
            path: i.backend.path.clone(),
            isolation: i.backend.isolation,
            in_use: i.in_use.lock().clone(),
            default: known.usual(i.name()).is_some_and(|usual| Arc::ptr_eq(usual, i)),
        });
        listed.collect()
    }
}

impl Platforms for Backends {
    fn backend_of(&self, platform: &str) -> Option<String> {
        self.known.load().claimant(platform, None).map(|b| b.facts.name.clone())
    }

    fn platforms_of(&self, backend: &str) -> Vec<String> {
        self.known.load().usual(backend).map_or(Vec::new(), |i| {
            i.backend.facts.platforms.iter().map(|(platform, _)| platform.clone()).collect()
        })
    }

    fn default_file(&self, platform_or_backend: &str) -> Option<String> {
        let known = self.known.load();
        let of_platform = known.claimant(platform_or_backend, None).and_then(|b| {
            b.facts.platforms.iter().find(|(p, _)| p == platform_or_backend).map(|(_, file)| file)
        });
        let of_backend = || {
            let backend = &known.usual(platform_or_backend)?.backend;
            backend.facts.platforms.first().map(|(_, file)| file)
        };
        of_platform.or_else(of_backend).filter(|f| !f.is_empty()).cloned()
    }

    fn known_backends(&self) -> Vec<String> {
        self.known.load().names().into_iter().map(str::to_owned).collect()
    }

    fn searched(&self) -> Vec<PathBuf> {
        self.dirs.clone()
    }
}
