//! What a library shares with the other libraries of a process, although the process opens it with
//! `RTLD_LOCAL`.
//!
//! The dynamic loader identifies a needed library by its SONAME: when one of that name is loaded,
//! it is used, from whichever file it came. And a symbol of type GNU_UNIQUE (a static variable of a
//! C++ template or inline function) exists once in a process: the first library that defines it
//! wins. So two versions of one library may use parts of each other without an error.
//!
//! Libraries with symbol versions are exempt: the loader checks that they provide the needed
//! versions. So are symbols of the C++ standard library, whose binary interface is stable.

use crate::FileStamp;
use crate::dynamic::DynamicSection;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How the kernel marks the path of a mapped file that was deleted.
const DELETED: &str = " (deleted)";

/// Where the loader finds system libraries, which are the same for every library of the process.
const SYSTEM: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// A library and its private dependencies: needed libraries found through its run path or
/// `LD_LIBRARY_PATH`, not in a system directory.
#[derive(Debug, Default)]
pub struct LinkedLibrary {
    /// The library itself first.
    files: Vec<LinkedFile>,
    /// Needed without a symbol version, and not a private dependency: from the system, or loaded by
    /// another library.
    foreign: Vec<String>,
}

#[derive(Debug)]
struct LinkedFile {
    path: PathBuf,
    stamp: FileStamp,
    /// Names by which the loader knows it, unless only symbol versions of it are needed.
    names: Vec<String>,
    /// GNU_UNIQUE symbols that it defines, ascending.
    unique: Vec<String>,
}

/// Two libraries cannot be used in one process side by side. The text goes on after "it".
#[derive(Debug)]
pub enum LibraryConflict {
    /// Both need a library of this SONAME, from different files.
    Soname { name: String, own: PathBuf, other: PathBuf },
    /// Both define these symbols.
    Unique { symbols: Vec<String>, own: PathBuf, other: PathBuf },
}

impl fmt::Display for LibraryConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Soname { name, own, other } => write!(
                f,
                "needs '{}' and would get '{}': a process has one library of the SONAME '{name}'. Give the libraries \
                 different SONAMEs",
                own.display(),
                other.display()
            ),
            Self::Unique { symbols, own, other } => {
                let shown: Vec<_> = symbols.iter().take(3).map(String::as_str).collect();
                let more = match symbols.len() - shown.len() {
                    0 => String::new(),
                    n => format!(" and {n} more"),
                };
                write!(
                    f,
                    "shares static variables with '{}': '{}' exports the unique symbols {}{more} as well. Export only the \
                     entry symbol (linker option --version-script)",
                    other.display(),
                    own.display(),
                    shown.join(", ")
                )
            }
        }
    }
}

impl LinkedFile {
    /// Whether the file at `path` has the contents that this one had when it was read.
    fn is_copy(&self, path: &Path) -> bool {
        FileStamp::read(&self.path).ok() == Some(self.stamp) && same_contents(path, &self.path)
    }
}

impl LinkedLibrary {
    /// Reads the file and its private dependencies.
    ///
    /// # Errors
    /// The file cannot be read. A private dependency that cannot be read is left to the loader.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut linked = Self { files: Vec::new(), foreign: Vec::new() };
        // Files to read: the path, the names by which it is needed, and the run paths of the
        // libraries that need it.
        let mut pending = vec![(path.to_owned(), Vec::new(), Vec::new())];
        while let Some((path, names, mut inherited)) = pending.pop() {
            let read =
                FileStamp::read(&path).and_then(|stamp| Ok((stamp, DynamicSection::read(&path)?)));
            let (stamp, dynamic) = match read {
                Ok(read) => read,
                Err(e) if linked.files.is_empty() => return Err(e),
                Err(_) => continue,
            };
            inherited.extend(dynamic.rpath(&path));
            for needed in &dynamic.needed {
                let versioned = dynamic.versioned.contains(needed);
                let Some(found) = find_library(needed, &dynamic.runpath(&path), &inherited) else {
                    if !versioned && !linked.foreign.contains(needed) {
                        linked.foreign.push(needed.clone());
                    }
                    continue;
                };
                let names = if versioned { Vec::new() } else { vec![needed.clone()] };
                let known = FileStamp::read(&found).ok();
                match linked.files.iter_mut().find(|file| Some(file.stamp) == known) {
                    Some(file) => file.names.extend(names),
                    None => pending.push((found, names, inherited.clone())),
                }
            }
            linked.files.push(LinkedFile { path, stamp, names, unique: dynamic.unique });
        }
        Ok(linked)
    }

    /// Whether anything of it could be confused with another library. If not, it has no conflicts.
    pub fn is_self_contained(&self) -> bool {
        let visible = self.files.iter().any(|f| !f.names.is_empty() || !f.unique.is_empty());
        !visible && self.foreign.is_empty()
    }

    /// Static variables that it would share with other versions of itself: unique symbols that it
    /// exports.
    pub fn unique_symbols(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|file| &file.unique).map(String::as_str)
    }

    /// Why it cannot be loaded beside `loaded`.
    pub fn conflict(&self, loaded: &LinkedLibrary) -> Option<LibraryConflict> {
        // The loader takes a file that was written to for the one that it has loaded.
        let other_file =
            |a: &LinkedFile, b: &LinkedFile| !a.stamp.same_inode(&b.stamp) && !b.is_copy(&a.path);
        for own in &self.files {
            for other in &loaded.files {
                let shared = own.names.iter().find(|name| other.names.contains(name));
                if let Some(name) = shared.filter(|_| other_file(own, other)) {
                    let (own, other) = (own.path.clone(), other.path.clone());
                    return Some(LibraryConflict::Soname { name: name.clone(), own, other });
                }
                let theirs: BTreeSet<_> = other.unique.iter().collect();
                let symbols: Vec<_> =
                    own.unique.iter().filter(|s| theirs.contains(s)).cloned().collect();
                if !symbols.is_empty() && other_file(own, other) {
                    let (own, other) = (own.path.clone(), other.path.clone());
                    return Some(LibraryConflict::Unique { symbols, own, other });
                }
            }
        }
        // It needs a library of the system, and the loaded one has a private copy of that name.
        for name in &self.foreign {
            let other = loaded.files.iter().find(|file| file.names.contains(name));
            let own = system_file(name).filter(|own| {
                let is_other = |other: &LinkedFile| FileStamp::read(own).ok() != Some(other.stamp);
                other.is_some_and(|other| is_other(other) && !other.is_copy(own))
            });
            if let (Some(own), Some(other)) = (own, other) {
                return Some(LibraryConflict::Soname {
                    name: name.clone(),
                    own,
                    other: other.path.clone(),
                });
            }
        }
        None
    }

    /// Why it cannot be loaded into a process that has mapped this file, which may have been
    /// deleted.
    pub fn conflict_with_mapped(&self, mapped: &Path) -> Option<LibraryConflict> {
        let name = mapped.file_name()?.to_str()?;
        let (name, deleted) = match name.strip_suffix(DELETED) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let own = self.files.iter().find(|file| file.names.iter().any(|n| n == name))?;
        let same =
            FileStamp::read(mapped).ok() == Some(own.stamp) || same_contents(&own.path, mapped);
        if same && !deleted {
            return None;
        }
        Some(LibraryConflict::Soname {
            name: name.to_owned(),
            own: own.path.clone(),
            other: mapped.to_owned(),
        })
    }
}

/// Where the loader finds a library by name, except in the system's directories.
fn find_library(name: &str, runpath: &[PathBuf], inherited: &[PathBuf]) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    // A run path replaces the older tag RPATH, which precedes the environment.
    let rpath = if runpath.is_empty() { inherited } else { &[] };
    let environment = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let environment: Vec<PathBuf> = std::env::split_paths(&environment).collect();
    let dirs = rpath.iter().chain(&environment).chain(runpath);
    let mut found = dirs.map(|dir| dir.join(name)).filter(|path| path.is_file());
    found.next().filter(|path| !is_of_system(path))
}

/// Whether it is a library of the system: /usr/lib/x86_64-linux-gnu/libz.so.1.
fn is_of_system(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let multiarch = |dir: &Path| {
        dir.file_name().is_some_and(|name| name.to_string_lossy().ends_with("-linux-gnu"))
    };
    let dir = path.parent().and_then(|dir| if multiarch(dir) { dir.parent() } else { Some(dir) });
    dir.is_some_and(|dir| SYSTEM.iter().any(|system| dir == Path::new(system)))
}

fn system_file(name: &str) -> Option<PathBuf> {
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    let dirs = SYSTEM.iter().flat_map(|dir| [Path::new(dir).join(&multiarch), PathBuf::from(dir)]);
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file())
}

fn same_contents(a: &Path, b: &Path) -> bool {
    let same_size = || Some(a.metadata().ok()?.len() == b.metadata().ok()?.len());
    if same_size() != Some(true) {
        return false;
    }
    let (Ok(mut a), Ok(mut b)) = (File::open(a), File::open(b)) else { return false };
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        match (a.read(&mut left), b.read(&mut right)) {
            (Ok(0), Ok(0)) => return true,
            (Ok(n), Ok(m)) if n == m && left[..n] == right[..m] => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
#[path = "linking_tests.rs"]
mod tests;
