//! `trtserver plugin list`: the backends in a directory, and why a file in it cannot be used.

mod describe;
mod entry;
mod libraries;
mod show;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use entry::ListEntry;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use trtserver_config::backend_settings;
use trtserver_library_file::LinkedLibrary;
use trtserver_plugin_host::Isolation;
use trtserver_plugin_host::discovery::candidate::Candidate;
use trtserver_plugin_host::discovery::{directories, manifest, version};
use trtserver_plugin_host::isolation::KEY;
use trtserver_plugin_host::library::conflicts;
use trtserver_server::{default_adapter_dirs, default_backend_dirs};

/// Time limit for loading, opening and closing a backend.
const LIMIT: Duration = Duration::from_secs(20);

pub fn list_command() -> Command {
    let long = "Lists the backends in directories with name, version, interface version, framework, platforms and \
                isolation. For a file that cannot be used it prints the reason, with all missing shared libraries. \
                Each file is loaded and opened in a child process.\n\nExit status: 0 = all can be used, 1 = a file \
                or a directory cannot, 2 = wrong usage.";
    Command::new("list")
        .about("Lists the backends in a directory")
        .long_about(long)
        .arg(
            Arg::new("backend-dir")
                .long("backend-dir")
                .visible_alias("backend-directory")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .action(ArgAction::Append)
                .help("A backend directory [default: those of the server]"),
        )
        .arg(
            Arg::new("backend-config")
                .long("backend-config")
                .value_name("[NAME,]KEY=VALUE")
                .action(ArgAction::Append)
                .help("A setting for backends, as for the server"),
        )
        .arg(json_flag())
        .arg(
            // For the child process: a file and its settings as JSON.
            Arg::new("describe").long("describe").hide(true),
        )
}

/// `--json`, the same for all commands.
pub(super) fn json_flag() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints one JSON document")
}

pub fn run_list(matches: &ArgMatches) -> Result<ExitCode, String> {
    if let Some(task) = matches.get_one::<String>("describe") {
        return describe::describe_in_child(task);
    }
    let typed = matches.get_many("backend-dir").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = typed.cloned().collect();
    if dirs.is_empty() {
        dirs = default_backend_dirs();
    }
    let typed = matches.get_many::<String>("backend-config").unwrap_or_default();
    let settings = backend_settings(typed.map(String::as_str))?;
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    let listing = directories::scan_directories(&dirs, &default_adapter_dirs());
    for candidate in listing.candidates {
        entries.push(entry(candidate, &settings)?);
    }
    for (candidate, e) in listing.bad_manifests {
        if candidate.file.path().ends_with(manifest::MANIFEST) {
            errors.push(e.message);
            continue;
        }
        let listed = entry(candidate, &settings)?;
        entries.push(ListEntry { usable: false, problem: Some(e.message), ..listed });
    }
    for (candidate, e) in listing.unopenable {
        entries.push(ListEntry::unopenable(candidate, e));
    }
    errors.extend(listing.unreadable.into_iter().map(|(_, e)| e.message));
    mark_conflicts(&mut entries);
    mark_mixing(&mut entries);
    let text = if matches.get_flag("json") {
        show::json_list(&dirs, &entries, &errors)?
    } else {
        show::table_list(&dirs, &entries, &errors)
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    let good = errors.is_empty() && entries.iter().all(|e| e.usable);
    Ok(ExitCode::from(u8::from(!good)))
}

fn entry(
    candidate: Candidate,
    settings: &BTreeMap<String, BTreeMap<String, String>>,
) -> Result<ListEntry, String> {
    let mut chosen = candidate.settings;
    chosen.extend(settings.get("").cloned().unwrap_or_default());
    chosen.extend(settings.get(&candidate.name).cloned().unwrap_or_default());
    let configured = chosen.remove(KEY);
    let (plugin, warnings) = (candidate.file, candidate.warnings);
    // The adapter finds the libraries that its own backends need.
    let mut missing_libraries = libraries::missing_libraries(&plugin.library);
    let (facts, mut problem) = describe::describe_plugin(&plugin, &chosen, LIMIT)?;
    if let Err(fault) = trtserver_library_file::check_library(&plugin.library) {
        // The libraries that a file for another machine needs are not expected here.
        missing_libraries.clear();
        problem = Some(fault.to_string());
    } else if !missing_libraries.is_empty() && problem.is_some() {
        let list: Vec<String> = missing_libraries.iter().map(ToString::to_string).collect();
        problem = Some(format!("shared libraries are missing: {}", list.join(", ")));
    }
    let isolation = configured.or_else(|| {
        facts.must_isolate.map(|must| if must { "process" } else { "none" }.to_owned())
    });
    if let Some(Err(why)) = isolation.as_deref().map(Isolation::parse) {
        problem = problem.or(Some(format!("setting '{KEY}' {why}")));
    }
    let name = facts.own_name.clone().unwrap_or(candidate.name);
    let usable = problem.is_none();
    let file = plugin.path().to_owned();
    let adapter = plugin.adapted.map(|adapted| adapted.adapter);
    Ok(ListEntry {
        file,
        adapter,
        name,
        facts,
        isolation,
        usable,
        problem,
        missing_libraries,
        warnings,
    })
}

/// Finds files that are the same version of a backend, or claim one platform under different names:
/// a server refuses to start with them.
fn mark_conflicts(entries: &mut [ListEntry]) {
    for at in 1..entries.len() {
        let (before, rest) = entries.split_at_mut(at);
        let Some(entry) = rest.first_mut().filter(|e| e.usable) else { continue };
        let is_twin = |b: &&ListEntry| {
            let same = b.name == entry.name && b.facts.version == entry.facts.version;
            same && file_id(&b.file) != file_id(&entry.file)
        };
        let twin = before.iter().filter(|b| b.usable).find(is_twin).map(|b| {
            let version = entry.facts.version.as_deref().unwrap_or_default();
            format!("version '{version}' of '{}' is also claimed by '{}'", b.name, b.file.display())
        });
        let shared = before.iter().filter(|b| b.usable && b.name != entry.name).find_map(|b| {
            let platform = entry.facts.platforms.iter().find(|p| b.facts.platforms.contains(p))?;
            Some(format!("platform '{platform}' is also claimed by '{}'", b.file.display()))
        });
        if let Some(problem) = twin.or(shared) {
            entry.usable = false;
            entry.problem = Some(problem);
        }
    }
}

/// Finds files that the server does not load beside another one, because they would share variables
/// or libraries with it. Of two versions it prefers the newer.
fn mark_mixing(entries: &mut [ListEntry]) {
    let mut order: Vec<_> = entries
        .iter_mut()
        .filter(|e| e.usable && e.isolation.as_deref() != Some("process"))
        .collect();
    order.sort_by(|a, b| {
        let version = |of: &ListEntry| of.facts.version.clone().unwrap_or_default();
        a.name.cmp(&b.name).then_with(|| version::compare_versions(&version(b), &version(a)))
    });
    let mut loaded: Vec<LinkedLibrary> = Vec::new();
    for entry in order {
        let Ok(linked) = LinkedLibrary::read(&entry.file) else { continue };
        match loaded.iter().find_map(|loaded| linked.conflict(loaded)) {
            Some(conflict) => {
                entry.usable = false;
                entry.problem = Some(conflicts::conflict_text(&conflict));
            }
            None => loaded.push(linked),
        }
    }
}

/// Identity of a file, the same for all its names.
fn file_id(file: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(file).ok().map(|m| (m.dev(), m.ino()))
}
