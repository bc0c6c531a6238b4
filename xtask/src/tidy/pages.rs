//! Files and functions that the pages about the source tree name, `server/src/router.rs` or
//! `tests/wire/v2_http.rs::infers_json`: they must exist.
//!
//! A path is looked for from the root of the repository and from `host`. Braces, stars and
//! placeholders are not checked.

use std::fs;
use std::path::Path;

/// Pages for readers of the source, which rot when files move.
const PAGES: &[&str] = &["ARCHITECTURE.md", "SPECIFICATION.md", "CONTRIBUTING.md", "README.md"];
const EXTENSIONS: &[&str] = &["rs", "h", "hpp", "c", "py", "md", "toml"];

/// Lists what the pages below `root` name and the tree does not have.
pub fn check(root: &Path, findings: &mut Vec<String>) {
    for page in PAGES {
        // Missing pages are not this check's concern.
        let Ok(text) = fs::read_to_string(root.join(page)) else { continue };
        for (number, line) in text.lines().enumerate() {
            for named in line.split('`').skip(1).step_by(2) {
                if let Some(problem) = problem(root, named) {
                    findings.push(format!("{page}:{}: {problem}", number + 1));
                }
            }
        }
    }
}

fn problem(root: &Path, named: &str) -> Option<String> {
    let (path, function) = match named.split_once("::") {
        Some((path, function)) => (path, Some(function)),
        None => (named, None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let extension = Path::new(path).extension().and_then(|e| e.to_str());
    // A bare file name is read in the context of its sentence.
    if !path.contains('/')
        || !path.chars().all(plain)
        || !extension.is_some_and(|e| EXTENSIONS.contains(&e))
    {
        return None;
    }
    let places = [root.join(path), root.join("host").join(path)];
    let Some(file) = places.iter().find(|p| p.is_file()) else {
        return Some(format!("there is no file `{path}`"));
    };
    let function = function?;
    let text = fs::read_to_string(file).unwrap_or_default();
    let found = text.contains(&format!("fn {function}("));
    (!found).then(|| format!("`{path}` has no function `{function}`"))
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
