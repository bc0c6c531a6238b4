//! What [`super::Backend::model_probe`] receives: a version directory, and the platform of which a
//! model is looked for.

use super::host::{as_slice, as_text};
use crate::abi;
use crate::abi::extensions::ProbeDesc;
use crate::abi::types::Str;

/// A version directory in which a model of one of the backend's platforms is looked for.
#[derive(Clone, Copy)]
pub struct ModelProbe<'a>(&'a ProbeDesc);

impl<'a> ModelProbe<'a> {
    /// # Safety
    /// The descriptor and all that it points at stay valid for `'a`.
    pub(crate) unsafe fn new(raw: &'a ProbeDesc) -> Self {
        Self(raw)
    }

    /// Name of the model.
    pub fn name(self) -> &'a str {
        self.text(self.0.name)
    }

    /// Number of the version.
    pub fn version(self) -> i64 {
        self.0.version
    }

    /// The directory of this version.
    pub fn version_dir(self) -> &'a str {
        self.text(self.0.version_dir)
    }

    /// One of [`super::BackendInfo::platforms`].
    pub fn platform(self) -> &'a str {
        self.text(self.0.platform)
    }

    /// The default file of the platform.
    pub fn default_file(self) -> &'a str {
        self.text(self.0.default_file)
    }

    /// The files and directories of the version directory, by name.
    pub fn entries(self) -> impl ExactSizeIterator<Item = DirEntry<'a>> {
        // SAFETY: the promise of `new`.
        let all: &'a [abi::extensions::DirEntry] =
            unsafe { as_slice(self.0.entries, self.0.n_entries.into()) };
        // SAFETY: the caller of `new` promises that the entries and their names are valid for `'a`.
        all.iter().map(|e| DirEntry { name: unsafe { as_text(e.name) }, is_dir: e.is_dir != 0 })
    }

    fn text(self, text: Str) -> &'a str {
        // SAFETY: the promise of `new`.
        unsafe { as_text(text) }
    }
}

/// A file or directory of a [`ModelProbe`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirEntry<'a> {
    /// Name without directories.
    pub name: &'a str,
    /// A directory, or a link to one.
    pub is_dir: bool,
}
