//! Why a plugin file was refused (load refusal), and at which stage of opening.

/// The stage of opening that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The dynamic loader refused the file, or the file failed the checks before it.
    Load,
    /// The library has no entry symbol for this host.
    Entry,
    /// Interface version and size of the backend table.
    Interface,
    /// Required entries of the table.
    RequiredEntries,
    /// The backend info.
    Description,
    /// Extensions that it requires of the host, or lists and does not return.
    Extensions,
}

/// Why a plugin file was refused, and at which stage of opening it.
#[derive(Debug)]
pub struct LoadRefusal {
    pub stage: Stage,
    /// The interface version that it was built for, if known.
    pub abi: Option<(u32, u32)>,
    /// The rest of a sentence about the file.
    pub why: String,
}

impl LoadRefusal {
    pub fn at(stage: Stage) -> impl Fn(String) -> Self {
        move |why| Self { stage, abi: None, why }
    }
}
