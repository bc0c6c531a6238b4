//! The compiled model of a package as a file in a folder of its own, opened as a library.
//!
//! The file lives until the model is there: the compiled model may map its weights from its own
//! file while it is created, and needs it no longer afterwards.

use crate::package::Package;
use crate::symbols::ContainerTable;
use goblin::elf::Elf;
use goblin::elf::dynamic::DT_NEEDED;
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
        drop_stub_dependency(&path)
            .map_err(|why| format!("the compiled model cannot be read: {why}"))?;
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

/// Makes the copy depend on [`USED`] twice instead of on [`STUB`].
fn drop_stub_dependency(path: &Path) -> Result<(), String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|e| e.to_string())?;
    let elf = Elf::parse(&bytes).map_err(|e| e.to_string())?;
    let Some(dynamic) = &elf.dynamic else { return Ok(()) };
    let name = |value: u64| elf.dynstrtab.get_at(usize::try_from(value).ok()?);
    let needed = || dynamic.dyns.iter().filter(|entry| entry.d_tag == DT_NEEDED);
    let Some(used) = needed().find(|entry| name(entry.d_val) == Some(USED)) else { return Ok(()) };
    let start =
        elf.program_headers.iter().find(|h| h.p_type == goblin::elf::program_header::PT_DYNAMIC);
    let Some(start) = start.map(|header| header.p_offset) else { return Ok(()) };
    for (nth, entry) in dynamic.dyns.iter().enumerate() {
        if entry.d_tag == DT_NEEDED && name(entry.d_val) == Some(STUB) {
            // An entry has a tag and a value of eight bytes each.
            let at = start + nth as u64 * 16 + 8;
            write_at(path, at, &used.d_val.to_le_bytes()).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
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
