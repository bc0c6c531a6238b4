//! Why a file cannot be loaded, found out without loading it: what it is, for which machine, and which of the shared
//! libraries that it or they need are not there.

use lddtree::DependencyAnalyzer;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A shared library that the dynamic loader would not find.
#[derive(Serialize)]
pub struct Missing {
    pub name: String,
    /// Who needs it: the file itself or another library.
    pub needed_by: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (needed by {})", self.name, self.needed_by.join(", "))
    }
}

/// The missing ones in order of their names. A file that is no library at all misses none.
pub fn missing(file: &Path) -> Vec<Missing> {
    let Ok(tree) = DependencyAnalyzer::new(PathBuf::from("/")).analyze(file) else {
        return Vec::new();
    };
    let own = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let found = |name: &String| tree.libraries.get(name).is_none_or(lddtree::Library::found);
    for name in tree.needed.iter().filter(|n| !found(n)) {
        missing.entry(name.clone()).or_default().push(own.clone());
    }
    for library in tree.libraries.values() {
        for name in library.needed.iter().filter(|n| !found(n)) {
            missing.entry(name.clone()).or_default().push(library.name.clone());
        }
    }
    let sorted = missing.into_iter().map(|(name, mut needed_by)| {
        needed_by.sort();
        needed_by.dedup();
        Missing { name, needed_by }
    });
    sorted.collect()
}

/// Where an ELF header says what the file is.
const CLASS: usize = 4;
const KIND: usize = 16;
const MACHINE: usize = 18;
/// `e_type` of a shared object.
const SHARED: u16 = 3;

/// Names of `e_machine`, those that servers are made of.
const MACHINES: &[(u16, &str)] = &[
    (3, "x86"),
    (21, "ppc64"),
    (22, "s390x"),
    (40, "arm"),
    (62, "x86_64"),
    (183, "aarch64"),
    (243, "riscv64"),
];

/// In words, what the dynamic loader says tersely; `None` for a shared library of this machine.
pub fn why_no_library(file: &Path) -> Option<String> {
    let mut head = Vec::new();
    match File::open(file).map(|f| f.take(20).read_to_end(&mut head)) {
        Ok(Ok(_)) => {}
        Ok(Err(e)) | Err(e) => return Some(format!("cannot be read: {e}")),
    }
    if head.is_empty() {
        return Some("not a shared library: the file is empty".to_owned());
    }
    if !head.starts_with(b"\x7fELF") || head.len() < 20 {
        return Some("not a shared library: it does not begin as an ELF file does".to_owned());
    }
    let word = |at: usize| match head[5] {
        2 => u16::from_be_bytes([head[at], head[at + 1]]),
        _ => u16::from_le_bytes([head[at], head[at + 1]]),
    };
    let name = |number: u16| {
        let known = MACHINES.iter().find(|(n, _)| *n == number);
        known.map_or_else(|| format!("machine number {number}"), |(_, name)| (*name).to_owned())
    };
    let ours = std::env::consts::ARCH;
    let theirs = name(word(MACHINE));
    if theirs != ours || head[CLASS] != 2 {
        let bits = if head[CLASS] == 2 { 64 } else { 32 };
        return Some(format!(
            "built for another machine: {theirs}, {bits} bits; this one is {ours}, 64 bits"
        ));
    }
    (word(KIND) != SHARED)
        .then(|| "not a shared library: it is an object file, a program or a core".to_owned())
}
