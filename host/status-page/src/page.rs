//! The files of the page, embedded in the server. They hold no data.

/// A file of the page.
#[derive(Debug, PartialEq, Eq)]
pub struct PageFile {
    /// Its path in the URL.
    pub path: &'static str,
    pub kind: &'static str,
    pub text: &'static str,
}

/// What the page may load: its own files and the server that it comes from. Text becomes markup
/// nowhere: browsers with trusted types refuse the functions for it.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: \
     blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'";

/// Media types of the files.
const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file in the folder `page`.
macro_rules! page_file {
    ($path:literal, $file:literal, $kind:expr) => {
        PageFile {
            path: $path,
            kind: $kind,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/page/", $file)),
        }
    };
}

/// All files, the page itself first.
pub const FILES: &[PageFile] = &[
    page_file!("/", "index.html", HTML),
    page_file!("/ui/style.css", "style.css", STYLE),
    page_file!("/ui/main.js", "main.js", SCRIPT),
    page_file!("/ui/dom.js", "dom.js", SCRIPT),
    page_file!("/ui/format.js", "format.js", SCRIPT),
    page_file!("/ui/api.js", "api.js", SCRIPT),
    page_file!("/ui/charts.js", "charts.js", SCRIPT),
    page_file!("/ui/models.js", "models.js", SCRIPT),
    page_file!("/ui/model.js", "model.js", SCRIPT),
    page_file!("/ui/try.js", "try.js", SCRIPT),
    page_file!("/ui/inputs.js", "inputs.js", SCRIPT),
    page_file!("/ui/outputs.js", "outputs.js", SCRIPT),
    page_file!("/ui/snippets.js", "snippets.js", SCRIPT),
    page_file!("/ui/server.js", "server.js", SCRIPT),
];

/// The file at a path. `accept` is what the client accepts: who asks for `/` and does not name HTML
/// is no browser, and gets none.
pub fn find_file(path: &str, accept: Option<&str>) -> Option<&'static PageFile> {
    let names_html = accept.is_some_and(|accept| accept.contains("text/html"));
    FILES.iter().find(|file| file.path == path).filter(|file| file.path != "/" || names_html)
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
