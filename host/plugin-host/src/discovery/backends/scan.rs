//! Scans of the backend directories: which backends of the inventory stay, which files are new, and
//! which of them can be used.

use super::{BackendDirs, Backends, VERSION_PARAMETER, VERSION_SETTING};
use crate::backend::PluginBackend;
use crate::discovery::candidate::Candidate;
use crate::discovery::directories::{self, Listing};
use crate::discovery::inventory::{BackendVersion, Inventory, UnusableFile, file_stamps};
use crate::discovery::version;
use crate::library;
use crate::plugin_file::{AdaptedLibrary, Identity, PluginFile};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use trtserver_base::error::{Code, Result};
use trtserver_plugin_api::abi::descriptors::backend_flags;

/// The backend setting with the batch size of completed models.
const BATCH_SIZE_SETTING: &str = "default-max-batch-size";

impl Backends {
    pub(super) fn scan_dirs(&self) -> Listing {
        let BackendDirs { given, default } = &self.dirs;
        directories::scan_with_defaults(given, default, &self.adapters.dirs)
    }

    /// Scans the directories for changes. The backends of a directory that cannot be read stay, and
    /// a new file that cannot be used affects no installed one.
    pub fn refresh(&self) {
        self.scans.run(|| self.scan_again());
    }

    fn scan_again(&self) {
        let before = self.inventory.load_full();
        let listing = self.scan_dirs();
        for (_, e) in &listing.unreadable {
            tracing::warn!("{e}; its backends stay as they are");
        }
        match self.update(listing, &before, false) {
            Ok(inventory) => self.inventory.store(Arc::new(inventory)),
            Err(e) => tracing::error!("{e}"),
        }
    }

    /// The inventory after a scan, given the one before. A conflict is an error at the start; later
    /// the new file is rejected.
    pub(super) fn update(
        &self,
        listing: Listing,
        before: &Inventory,
        at_start: bool,
    ) -> Result<Inventory> {
        let mut now =
            Inventory { configured: Arc::clone(&before.configured), ..Inventory::default() };
        let mut new = Vec::new();
        for (candidate, e) in listing.bad_manifests {
            // Settings are read when the library is opened: an installed one does not need the
            // manifest any more.
            let identity = candidate.file.identity().ok();
            let installed = identity.and_then(|identity| before.by_identity(&identity));
            match installed {
                Some(installed) => now.usable.push(Arc::clone(installed)),
                None => now.reject(before, &candidate, false, e),
            }
        }
        for (candidate, e) in listing.unopenable {
            now.reject(before, &candidate, false, e);
        }
        for candidate in listing.candidates {
            let stamps = file_stamps(&candidate.file);
            // Otherwise it was removed after the directory was listed.
            let Ok(identity) = candidate.file.identity() else { continue };
            let path = candidate.file.path();
            let unchanged = |u: &&UnusableFile| !u.recheck && u.is_still(path, &stamps);
            let same_file = |(_, other): &(Candidate, Identity)| *other == identity;
            if now.by_identity(&identity).is_some() || new.iter().any(same_file) {
                // Another name of the same file.
            } else if let Some(installed) = before.by_identity(&identity) {
                now.usable.push(Arc::clone(installed));
            } else if let Some(unusable) = before.unusable.iter().find(unchanged) {
                now.unusable.push(unusable.clone());
            } else {
                new.push((candidate, identity));
            }
        }
        for (dir, _) in listing.unreadable {
            let kept = before.usable.iter().filter(|i| i.backend.file.path().starts_with(&dir));
            let kept: Vec<_> =
                kept.filter(|i| now.by_identity(&i.identity).is_none()).cloned().collect();
            now.usable.extend(kept);
        }
        for gone in before.usable.iter().filter(|i| now.by_identity(&i.identity).is_none()) {
            let (name, version) = (gone.name(), gone.version());
            let file = gone.backend.file.path().display();
            tracing::info!(
                "the file of backend '{name}' {version}, {file}, was removed or replaced; models that use it keep it"
            );
        }
        now.adapters = listing.adapters;
        now.sort();
        // Libraries of one directory share a manifest and its warnings.
        let warnings: BTreeSet<_> = new.iter().flat_map(|(new, _)| &new.warnings).collect();
        warnings.into_iter().for_each(|warning| tracing::warn!("{warning}"));
        // If two versions cannot be loaded side by side, the newest is.
        new.sort_by(|(a, _), (b, _)| {
            let version = |of: &Candidate| of.version.clone().unwrap_or_default();
            a.name.cmp(&b.name).then_with(|| version::compare_versions(&version(b), &version(a)))
        });
        let mut opened = Vec::new();
        for (candidate, identity) in new {
            let found = now.usable.iter().map(|installed| &**installed);
            let found = found.chain(opened.iter().map(|(_, installed)| installed));
            match self.install(candidate.clone(), identity, !at_start, found) {
                Ok(installed) => opened.push((candidate, installed)),
                // No child process could be started: which is not a fault of the file.
                Err(e) => now.reject(before, &candidate, e.code == Code::Unavailable, e),
            }
        }
        let is_default =
            |candidate: &Candidate| directories::is_below(candidate, &self.dirs.default);
        // Of two that claim one platform, the one that the operator has added serves it.
        opened.sort_by(|(in_a, a), (in_b, b)| {
            let by_version = || version::compare_versions(b.version(), a.version());
            is_default(in_a).cmp(&is_default(in_b)).then_with(by_version)
        });
        for (candidate, installed) in opened {
            let (name, version) = (installed.name().to_owned(), installed.version().to_owned());
            match now.add(Arc::new(installed)) {
                Ok(()) => {
                    let file = candidate.file.path().display();
                    let through = match &candidate.file.adapted {
                        Some(adapted) => format!(", opened through {}", adapted.adapter),
                        None => String::new(),
                    };
                    tracing::info!("found backend '{name}' {version} in {file}{through}");
                }
                Err(e) if at_start && !is_default(&candidate) => return Err(e),
                Err(e) => now.reject(before, &candidate, true, e),
            }
        }
        log_claimants(&now, before);
        Ok(now)
    }

    /// `found` are the backends found so far: those of one adapter have their facts in common.
    pub(super) fn install<'a>(
        &self,
        mut candidate: Candidate,
        identity: Identity,
        probe: bool,
        mut found: impl Iterator<Item = &'a BackendVersion>,
    ) -> Result<BackendVersion> {
        let PluginFile { library, adapted } = &candidate.file;
        library::check_file(library).map_err(|why| library::refusal_error(library, why))?;
        let mut sibling = None;
        if let Some(AdaptedLibrary { file, .. }) = adapted {
            if file.extension().is_some_and(|end| end == std::env::consts::DLL_EXTENSION) {
                library::check_file(file).map_err(|why| library::refusal_error(file, why))?;
            }
            for (key, value) in &self.adapters.settings {
                candidate.settings.entry(key.clone()).or_insert_with(|| value.clone());
            }
            sibling = found.find(|other| other.identity.library == identity.library);
        }
        let mut chosen = self.settings.get("").cloned().unwrap_or_default();
        chosen.extend(self.settings.get(&candidate.name).cloned().unwrap_or_default());
        let (dir, path) = (candidate.version.clone(), candidate.file.path().to_owned());
        let sibling = sibling.map(|installed| &installed.backend);
        let mut backend = PluginBackend::load(
            candidate,
            identity.clone(),
            &chosen,
            probe,
            sibling,
            &self.child_processes,
            &self.live_models,
        )?;
        if self.trtis_rules && backend.facts.flags & backend_flags::V1_BATCH_SIZE != 0 {
            let set = backend.settings.entry(BATCH_SIZE_SETTING.to_owned());
            set.or_insert_with(|| "1".to_owned());
        }
        if backend.facts.flags & backend_flags::OWN_VERSION_SETTING != 0
            && let Some(version) = self.versions.get(&backend.facts.name)
        {
            backend.settings.insert(VERSION_SETTING.to_owned(), version.clone());
        }
        let declared = &backend.facts.version;
        if let Some(dir) = dir.filter(|dir| !version::matches_requested(declared, dir)) {
            tracing::warn!(
                "backend '{}' declares version '{declared}' but is in a directory '{dir}'; the declared version counts",
                path.display()
            );
        }
        Ok(BackendVersion { identity, backend, in_use: Mutex::default(), logged: Mutex::default() })
    }
}

/// Logs which file serves a backend that a plugin and an adapter offer, when that has changed.
fn log_claimants(now: &Inventory, before: &Inventory) {
    for name in now.names() {
        let offers = |inventory: &Inventory| -> Vec<String> {
            let offer = |i: &Arc<BackendVersion>| {
                format!("'{}' in {}", i.version(), i.backend.file.path().display())
            };
            inventory.versions(name).map(offer).collect()
        };
        let kinds = || now.versions(name).map(|i| i.backend.file.adapted.is_some());
        let mixed = kinds().any(|adapted| adapted) && kinds().any(|adapted| !adapted);
        let all = offers(now);
        if mixed && all != offers(before) {
            let default = now.default_version(name).map_or("", |i| i.version());
            tracing::info!(
                "backend '{name}' is offered as {}; models get '{default}' unless their parameter \
                 '{VERSION_PARAMETER}' selects another",
                all.join(" and as ")
            );
        }
    }
}
