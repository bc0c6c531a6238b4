//! The compiled model of a package as a file in a folder of its own, opened as a library.
//!
//! The file lives until the model is there: the compiled model may map its weights from its own
//! file while it is created, and needs it no longer afterwards.

use crate::package::Package;
use crate::symbols::ContainerTable;
use goblin::elf::Elf;
use goblin::elf::dynamic::DT_NEEDED;
use goblin::elf::program_header::PT_DYNAMIC;
use goblin::elf::sym::sym64::SIZEOF_SYM;
use goblin::elf::sym::{STB_GLOBAL, STB_GNU_UNIQUE, Sym};
use libloading::os::unix::Library;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use tempfile::TempDir;
use trtserver_framework::search::load_library;
use trtserver_library_file::check_library;

/// An open compiled model. The library is closed and the folder removed when it is dropped.
pub struct ExtractedModel {
    pub table: ContainerTable,
    /// The functions point into it.
    _library: Library,
    folder: Option<TempDir>,
}

impl ExtractedModel {
    /// # Errors
    /// Goes on after the package's name and a colon.
    pub fn open(package: &mut Package) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("trtserver-pytorch-").tempdir();
        let folder = folder.map_err(|e| {
            format!(
                "no temporary folder for the compiled model in {}: {e}; the environment variable TMPDIR names another \
                 place",
                std::env::temp_dir().display()
            )
        })?;
        let path = folder.path().join("model.so");
        package.extract(&path)?;
        check_library(&path).map_err(|fault| format!("the compiled model is {fault}"))?;
        adapt_copy(&path).map_err(|why| format!("the compiled model cannot be read: {why}"))?;
        let library = load_library(&path).map_err(|reason| explain_open(&reason, &path))?;
        // SAFETY: the names are those of the interface of compiled models.
        let table = unsafe { ContainerTable::load(&library) }.map_err(|absent| {
            format!(
                "the compiled model lacks functions that torch has since 2.9: {}; compile the module with a newer \
                 torch",
                absent.join(", ")
            )
        })?;
        Ok(Self { table, _library: library, folder: Some(folder) })
    }

    /// The model is there: removes the file.
    pub fn remove_file(&mut self) {
        // What cannot be removed is left for the system: the model runs all the same.
        drop(self.folder.take());
    }
}

/// What every compiled model is linked with, and what it uses of it: the first library is empty,
/// but in torch for CUDA it opens CUDA's libraries, of 3 GB, which a model for the CPU does not
/// use.
const STUB: &str = "libtorch.so";
const USED: &str = "libtorch_cpu.so";

/// Changes the copy so that it can be opened without CUDA's libraries, shares no variable with other
/// models, and leaves the process when it is closed.
fn adapt_copy(path: &Path) -> Result<(), String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|e| e.to_string())?;
    let elf = Elf::parse(&bytes).map_err(|e| e.to_string())?;
    let all = [stub_dependencies(&elf), unique_symbols(&elf), thread_destructors(&elf)];
    let changes: Vec<Change> = all.into_iter().flatten().collect();
    write_changes(path, &changes).map_err(|e| e.to_string())
}

/// Place in the file, and the bytes to be there.
type Change = (u64, Vec<u8>);

/// Makes a library depend on [`USED`] twice instead of on [`STUB`].
fn stub_dependencies(elf: &Elf<'_>) -> Vec<Change> {
    let Some(dynamic) = &elf.dynamic else { return Vec::new() };
    let name = |value: u64| elf.dynstrtab.get_at(usize::try_from(value).ok()?);
    let needed = || dynamic.dyns.iter().filter(|entry| entry.d_tag == DT_NEEDED);
    let Some(used) = needed().find(|entry| name(entry.d_val) == Some(USED)) else {
        return Vec::new();
    };
    let start = elf.program_headers.iter().find(|header| header.p_type == PT_DYNAMIC);
    let Some(start) = start.map(|header| header.p_offset) else { return Vec::new() };
    let stubs = dynamic
        .dyns
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.d_tag == DT_NEEDED && name(entry.d_val) == Some(STUB));
    // An entry has a tag and a value of eight bytes each.
    stubs.map(|(nth, _)| (start + nth as u64 * 16 + 8, used.d_val.to_le_bytes().to_vec())).collect()
}

/// Makes unique symbols of a library global ones. The compiler makes static variables of templates
/// and inline functions unique: the dynamic loader gives all libraries of the process one and the
/// same, those of other models and releases among them, and never closes a library that has them,
/// which would keep the weights in memory. What a model shares with torch's library needs no unique
/// symbols: they exchange C types only.
fn unique_symbols(elf: &Elf<'_>) -> Vec<Change> {
    let Some(table) = symbol_table(elf) else { return Vec::new() };
    let unique =
        elf.dynsyms.iter().enumerate().filter(|(_, symbol)| symbol.st_bind() == STB_GNU_UNIQUE);
    // The fifth byte of an entry has the binding and the type.
    let info = |symbol: &Sym| STB_GLOBAL << 4 | symbol.st_type();
    unique
        .map(|(nth, symbol)| (table + (nth * SIZEOF_SYM) as u64 + 4, vec![info(&symbol)]))
        .collect()
}

/// Registers a destructor of a thread's variable, for which the dynamic loader keeps the library until
/// the thread ends.
const REGISTER: &str = "__cxa_thread_atexit";
/// Returns 0, as the former does, and takes no notice of arguments.
const NO_OPERATION: &str = "aoti_torch_device_type_cpu";

/// Makes a library call [`NO_OPERATION`] in place of [`REGISTER`]. Newer releases of torch keep the text
/// of the last error in such a variable, whose destructor each call of a model would register, also
/// on the server's own threads, which never end. What is lost is the memory of a text.
fn thread_destructors(elf: &Elf<'_>) -> Vec<Change> {
    let imported = |name: &str| {
        let is_import = |(_, symbol): &(usize, Sym)| {
            symbol.is_import() && elf.dynstrtab.get_at(symbol.st_name) == Some(name)
        };
        elf.dynsyms.iter().enumerate().find(is_import)
    };
    let versions = elf.dynamic.as_ref().map(|dynamic| dynamic.info.versym);
    let (Some((from, _)), Some((to, other))) = (imported(REGISTER), imported(NO_OPERATION)) else {
        return Vec::new();
    };
    let Some(table) = symbol_table(elf) else { return Vec::new() };
    let name = u32::try_from(other.st_name).unwrap_or_default().to_le_bytes();
    let mut changes = vec![(table + (from * SIZEOF_SYM) as u64, name.to_vec())];
    // The first belongs to a version of the C++ library, which does not have the other.
    let own = elf.versym.as_ref().and_then(|all| all.get_at(to));
    if let (Some(versions @ 1..), Some(own)) = (versions, own) {
        changes.push((versions + 2 * from as u64, own.vs_val.to_le_bytes().to_vec()));
    }
    changes
}

/// Where the file has the symbols that the dynamic loader reads.
fn symbol_table(elf: &Elf<'_>) -> Option<u64> {
    let table = elf.dynamic.as_ref()?.info.symtab as u64;
    (table > 0).then_some(table)
}

fn write_changes(path: &Path, changes: &[Change]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    changes.iter().try_for_each(|(at, bytes)| {
        file.seek(SeekFrom::Start(*at))?;
        file.write_all(bytes)
    })
}

/// What the dynamic loader's message means.
fn explain_open(reason: &str, path: &Path) -> String {
    // The folder is gone when somebody reads this.
    let reason = reason.replace(&path.display().to_string(), "the compiled model");
    let advice = if reason.contains("undefined symbol: aoti_") {
        "it was compiled by another release of torch: compile it with the release of this library, or name that \
         release's library"
    } else if reason.contains("undefined symbol") {
        "it uses C++ functions, which this plugin does not provide, or another release of torch compiled it"
    } else if reason.contains("failed to map segment") {
        "the folder for temporary files does not allow code: the environment variable TMPDIR names another one"
    } else if reason.contains("cannot open shared object file") {
        "install the library that it was linked with"
    } else {
        "it cannot be opened"
    };
    format!("{reason}: {advice}")
}

#[cfg(test)]
#[path = "extracted_tests.rs"]
mod tests;
