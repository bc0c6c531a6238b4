//! The dynamic section of a library file: needed libraries, run paths, symbol versions, exported
//! symbols.
//!
//! Read piece by piece: libraries may have hundreds of megabytes, these tables some kilobytes.

use crate::segments;
use goblin::elf::Elf;
use goblin::elf::dynamic::{
    DT_GNU_HASH, DT_HASH, DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, DT_SYMTAB,
    DT_VERNEED, DT_VERNEEDNUM,
};
use goblin::elf::program_header::{PT_DYNAMIC, PT_LOAD, ProgramHeader};
use goblin::elf::section_header::{SHN_ABS, SHN_UNDEF};
use goblin::elf::sym::{
    STB_GNU_UNIQUE, STB_LOCAL, STV_DEFAULT, STV_PROTECTED, st_bind, st_visibility,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Largest table that is read: far more than any library has.
const MAX_TABLE: u64 = 64 << 20;
const SYMBOL: usize = 24;

/// What the dynamic section of a library says: needed libraries, run paths and symbols.
#[derive(Debug, Default)]
pub struct DynamicSection {
    /// Names of needed libraries.
    pub needed: Vec<String>,
    /// Needed libraries of which it needs versioned symbols.
    pub versioned: BTreeSet<String>,
    /// GNU_UNIQUE symbols that it exports, without those of the C++ standard library; ascending.
    pub unique: Vec<String>,
    rpath: Option<String>,
    runpath: Option<String>,
}

impl DynamicSection {
    /// # Errors
    /// The file cannot be read, or its tables contradict each other.
    pub fn read(path: &Path) -> io::Result<Self> {
        let reader = ElfReader::open(path)?;
        reader.tables().and_then(|tables| reader.dynamic(&tables)).ok_or_else(damaged)
    }

    /// Directories of the tag RPATH, which also apply to the libraries that it needs.
    pub fn rpath(&self, path: &Path) -> Vec<PathBuf> {
        search_dirs(self.rpath.as_deref().filter(|_| self.runpath.is_none()), path)
    }

    /// Directories of the tag RUNPATH.
    pub fn runpath(&self, path: &Path) -> Vec<PathBuf> {
        search_dirs(self.runpath.as_deref(), path)
    }
}

/// Splits a run path; `$ORIGIN` is the directory of the library.
fn search_dirs(run_path: Option<&str>, library: &Path) -> Vec<PathBuf> {
    let origin = library.canonicalize().unwrap_or_else(|_| library.to_owned());
    let origin = origin.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let dirs = run_path.into_iter().flat_map(|dirs| dirs.split(':')).filter(|dir| !dir.is_empty());
    dirs.map(|dir| dir.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into()).collect()
}

/// Names of the symbols that other libraries can be bound to, ascending.
///
/// # Errors
/// The file cannot be read, or its tables contradict each other.
pub fn read_exports(path: &Path) -> io::Result<Vec<String>> {
    let reader = ElfReader::open(path)?;
    reader.tables().and_then(|tables| reader.exports(&tables, |_| true)).ok_or_else(damaged)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its tables are damaged")
}

/// A file, read piece by piece. Functions return `None` where its tables contradict each other.
struct ElfReader {
    file: File,
    segments: Vec<ProgramHeader>,
}

/// The dynamic section and the strings that it names; both empty in a file without one.
#[derive(Default)]
struct DynamicTables {
    tags: Vec<(u64, u64)>,
    strings: StringTable,
}

impl DynamicTables {
    fn tag(&self, wanted: u64) -> Option<u64> {
        self.tags.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value)
    }
}

impl ElfReader {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0)?;
        let header = Elf::parse_header(&head).map_err(|_| damaged())?;
        let segments = segments(&file, &header).ok_or_else(damaged)?;
        Ok(Self { file, segments })
    }

    fn tables(&self) -> Option<DynamicTables> {
        let Some(segment) = self.segments.iter().find(|s| s.p_type == PT_DYNAMIC) else {
            return Some(DynamicTables::default());
        };
        let tags = self.bytes(segment.p_offset, segment.p_filesz)?;
        let tags = tags
            .chunks_exact(16)
            .map_while(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)))
            .take_while(|(tag, _)| *tag != 0);
        let mut tables = DynamicTables { tags: tags.collect(), strings: StringTable::default() };
        match tables.tag(DT_STRTAB) {
            Some(at) => tables.strings = StringTable(self.mapped(at, tables.tag(DT_STRSZ)?)?),
            None => tables.tags.clear(),
        }
        Some(tables)
    }

    fn dynamic(&self, tables: &DynamicTables) -> Option<DynamicSection> {
        let DynamicTables { tags, strings } = tables;
        let needed = tags.iter().filter(|(tag, _)| *tag == DT_NEEDED);
        let mut unique = self.exports(tables, |bind| bind == STB_GNU_UNIQUE)?;
        unique.retain(|name| !is_standard(name));
        Some(DynamicSection {
            needed: needed.map(|(_, at)| strings.get(*at)).collect::<Option<_>>()?,
            versioned: match (tables.tag(DT_VERNEED), tables.tag(DT_VERNEEDNUM)) {
                (Some(at), Some(n)) => self.versioned(at, n, strings)?,
                _ => BTreeSet::new(),
            },
            unique,
            rpath: tables.tag(DT_RPATH).and_then(|at| strings.get(at)),
            runpath: tables.tag(DT_RUNPATH).and_then(|at| strings.get(at)),
        })
    }

    /// Libraries in the table of needed versions.
    fn versioned(&self, mut at: u64, n: u64, strings: &StringTable) -> Option<BTreeSet<String>> {
        let mut files = BTreeSet::new();
        for _ in 0..n {
            let entry = self.mapped(at, 16)?;
            files.insert(strings.get(u32_at(&entry, 4)?.into())?);
            match u32_at(&entry, 12)? {
                0 => break,
                next => at = at.checked_add(next.into())?,
            }
        }
        Some(files)
    }

    /// Names of the exported symbols with such a binding, ascending.
    fn exports(&self, tables: &DynamicTables, accepts: impl Fn(u8) -> bool) -> Option<Vec<String>> {
        let Some(symbols) = tables.tag(DT_SYMTAB) else { return Some(Vec::new()) };
        let (first, end) = match (tables.tag(DT_GNU_HASH), tables.tag(DT_HASH)) {
            (Some(hash), _) => self.hashed(hash)?,
            // The second word of the older hash table is the number of symbols.
            (None, Some(hash)) => (0, u32_at(&self.mapped(hash, 8)?, 4)?),
            (None, None) => return Some(Vec::new()),
        };
        let size = u64::from(end.checked_sub(first)?) * SYMBOL as u64;
        let at = symbols.checked_add(u64::from(first) * SYMBOL as u64)?;
        let table = self.mapped(at, size)?;
        let exported = table.chunks_exact(SYMBOL).filter(|symbol| {
            let (bind, visibility) = (st_bind(symbol[4]), st_visibility(symbol[5]));
            let section = u32::from(u16::from_ne_bytes([symbol[6], symbol[7]]));
            // Absolute symbols name versions.
            !matches!(section, SHN_UNDEF | SHN_ABS)
                && matches!(visibility, STV_DEFAULT | STV_PROTECTED)
                && bind != STB_LOCAL
                && accepts(bind)
        });
        let names = exported.map(|symbol| tables.strings.get(u32_at(symbol, 0)?.into()));
        let mut names = names.collect::<Option<Vec<_>>>()?;
        names.sort();
        names.dedup();
        Some(names)
    }

    /// Range of the symbols that a library defines: a GNU hash table covers just those, at the end
    /// of the symbol table.
    fn hashed(&self, hash: u64) -> Option<(u32, u32)> {
        let head = self.mapped(hash, 16)?;
        let [buckets, first, bloom] = [0, 4, 8].map(|at| u32_at(&head, at));
        let (buckets, first, bloom) = (buckets?, first?, bloom?);
        let at = hash + 16 + u64::from(bloom) * 8;
        let table = self.mapped(at, u64::from(buckets) * 4)?;
        let last = table.chunks_exact(4).filter_map(|b| u32_at(b, 0)).max()?;
        if last < first {
            return Some((first, first));
        }
        // The last chain ends where the lowest bit is set.
        let chains = at + u64::from(buckets) * 4;
        let mut last = last;
        loop {
            let entry = self.mapped(chains + u64::from(last - first) * 4, 4)?;
            last += 1;
            if u32_at(&entry, 0)? & 1 == 1 {
                return Some((first, last));
            }
        }
    }

    /// What the loader maps at this address.
    fn mapped(&self, address: u64, bytes: u64) -> Option<Vec<u8>> {
        let inside = |s: &&ProgramHeader| {
            let end = address.checked_add(bytes);
            let to = s.p_vaddr.checked_add(s.p_filesz);
            s.p_type == PT_LOAD && s.p_vaddr <= address && end.is_some_and(|end| Some(end) <= to)
        };
        let segment = self.segments.iter().find(inside)?;
        self.bytes(segment.p_offset.checked_add(address - segment.p_vaddr)?, bytes)
    }

    fn bytes(&self, offset: u64, bytes: u64) -> Option<Vec<u8>> {
        if bytes > MAX_TABLE {
            return None;
        }
        let mut table = vec![0; bytes as usize];
        self.file.read_exact_at(&mut table, offset).ok()?;
        Some(table)
    }
}

#[derive(Default)]
struct StringTable(Vec<u8>);

impl StringTable {
    fn get(&self, at: u64) -> Option<String> {
        let from = self.0.get(usize::try_from(at).ok()?..)?;
        let end = from.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&from[..end]).into_owned())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

/// Whether a mangled name is in the namespace `std` or `__gnu_cxx`.
fn is_standard(name: &str) -> bool {
    let Some(mut rest) = name.strip_prefix("_Z") else { return false };
    // Guard variable, local entity, nested name, const member.
    while let Some(inner) = ["GV", "Z", "N", "K"].iter().find_map(|p| rest.strip_prefix(p)) {
        rest = inner;
    }
    rest.starts_with("9__gnu_cxx")
        || rest
            .strip_prefix('S')
            .is_some_and(|rest| rest.starts_with(['t', 'a', 'b', 's', 'i', 'o', 'd']))
}

#[cfg(test)]
#[path = "dynamic_tests.rs"]
mod tests;
