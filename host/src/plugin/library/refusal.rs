//! Why a file is no backend for this host, and how far its opening came.

/// How far an opening came when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The dynamic loader refused the file, or was not asked because of what it is.
    Load,
    /// It is a library without a door for this host.
    Door,
    /// Numbers and size of the table that it gave.
    Interface,
    /// Entries that every backend has.
    Entries,
    /// What it says of itself.
    Description,
}

/// Why a file is no backend for this host.
#[derive(Debug)]
pub struct Refusal {
    pub stage: Stage,
    /// The interface that it was built for, as far as it said.
    pub abi: Option<(u32, u32)>,
    /// The rest of a sentence about the file.
    pub why: String,
}

impl Refusal {
    pub fn at(stage: Stage) -> impl Fn(String) -> Self {
        move |why| Self { stage, abi: None, why }
    }
}
