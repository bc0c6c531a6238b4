//! The reference of the C interfaces: pages of the book made from the headers, whose comments must say
//! something of each declaration.

mod header;
mod page;

use crate::command::Result;
use header::{Declaration, DeclarationKind, Header, Member, read_header};
use page::Names;
use std::fs;
use std::path::Path;

/// A header, and the page that is made of it.
pub struct CPage {
    /// From the root of the repository.
    header: &'static str,
    pub title: &'static str,
    /// Without extension.
    pub name: &'static str,
}

/// In the order of the contents.
pub const PAGES: [CPage; 8] = [
    CPage {
        header: "clients/c/include/trtserver_client.h",
        title: "Client library: trtserver_client.h",
        name: "trtserver_client",
    },
    plugin_page("types", "plugin-api/include/trtserver/types.h", "Plugin interface: types.h"),
    plugin_page("request", "plugin-api/include/trtserver/request.h", "Plugin interface: request.h"),
    plugin_page(
        "descriptors",
        "plugin-api/include/trtserver/descriptors.h",
        "Plugin interface: descriptors.h",
    ),
    plugin_page("host", "plugin-api/include/trtserver/host.h", "Plugin interface: host.h"),
    plugin_page("backend", "plugin-api/include/trtserver/backend.h", "Plugin interface: backend.h"),
    plugin_page(
        "extensions",
        "plugin-api/include/trtserver/extensions.h",
        "Plugin interface: extensions.h",
    ),
    plugin_page(
        "inference",
        "plugin-api/include/trtserver/inference.h",
        "Plugin interface: inference.h",
    ),
];

impl CPage {
    /// As in the programs that use the header.
    fn include(&self) -> &'static str {
        self.header.split_once("include/").map_or(self.header, |(_, name)| name)
    }
}

const fn plugin_page(name: &'static str, header: &'static str, title: &'static str) -> CPage {
    CPage { header, title, name }
}

/// Adds what the comments of the headers do not say.
pub fn check(root: &Path, findings: &mut Vec<String>) {
    for page in &PAGES {
        match read(root, page) {
            Ok(header) => {
                let missing = undocumented(&header).into_iter();
                findings.extend(missing.map(|name| format!("{}: {name}: no comment", page.header)));
            }
            Err(problem) => findings.push(problem),
        }
    }
}

/// The name of the Markdown file of each page, and its text.
///
/// # Errors
/// A header cannot be read.
pub fn pages(root: &Path) -> Result<Vec<(&'static CPage, String)>> {
    let mut headers = Vec::new();
    for page in &PAGES {
        headers.push((page, read(root, page)?));
    }
    let names = Names::collect(headers.iter().map(|(page, header)| (page.name, header)));
    Ok(headers.iter().map(|(page, header)| (*page, page::write(page, header, &names))).collect())
}

fn read(root: &Path, page: &CPage) -> Result<Header> {
    let text = fs::read_to_string(root.join(page.header))
        .map_err(|e| format!("cannot read {}: {e}", page.header))?;
    read_header(&text).map_err(|e| format!("{}: {e}", page.header))
}

/// Declarations, fields and entries without a comment. Constants of an enumeration have its comment.
fn undocumented(header: &Header) -> Vec<String> {
    let mut names = Vec::new();
    for declared in header.declarations() {
        if declared.comment.is_empty() {
            names.push(shown_name(declared));
        }
        let silent = |member: &&Member| {
            member.comment.is_empty()
                && declared.kind == DeclarationKind::Struct
                && !is_explained_at_the_top(member)
        };
        let fields = declared.members.iter().filter(silent);
        names.extend(fields.map(|member| format!("{}.{}", declared.name, member.name)));
    }
    names
}

/// Fields that have the same meaning in all structures, which the introductions say.
fn is_explained_at_the_top(member: &Member) -> bool {
    let name = member.name.as_str();
    matches!(name, "struct_size" | "pad" | "reserved")
        || member.code == "uint64_t size"
        || name.starts_with("n_")
        || name.ends_with("_count") && member.code.starts_with("size_t")
}

/// What a reader sees as the name of a declaration. Enumerations have none.
fn shown_name(declared: &Declaration) -> String {
    const LISTED: usize = 2;
    let constants = declared.members.iter().map(|member| member.name.as_str());
    match declared.kind {
        DeclarationKind::Enumeration if declared.members.len() > LISTED => {
            format!("{}…", declared.name)
        }
        DeclarationKind::Enumeration => constants.collect::<Vec<_>>().join(", "),
        _ => declared.name.clone(),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
