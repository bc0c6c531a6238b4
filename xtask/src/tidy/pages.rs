//! Files and functions that the pages about the source tree name, `server/src/router.rs` or
//! `tests/wire/v2_http.rs::infers_json`: they must exist.
//!
//! Each row of the trust boundaries in SECURITY.md names a test that holds it.
//!
//! A path is looked for from the root of the repository and from `host`. Braces, stars and
//! placeholders are not checked.

use std::fs;
use std::path::Path;

/// Pages for readers of the source, which rot when files move.
const PAGES: &[&str] =
    &["ARCHITECTURE.md", "SPECIFICATION.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];
/// The section of SECURITY.md whose table names tests.
const BOUNDARIES: &str = "## Trust boundaries";
const EXTENSIONS: &[&str] = &["rs", "h", "hpp", "c", "py", "md", "toml"];

/// Lists what the pages below `root` name and the tree does not have, and boundaries without a
/// test.
pub fn check(root: &Path, findings: &mut Vec<String>) {
    let security = fs::read_to_string(root.join("SECURITY.md")).unwrap_or_default();
    check_boundaries(root, &security, findings);
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

/// Lists rows of the trust boundaries that name no test, and what they name that is not one.
fn check_boundaries(root: &Path, page: &str, findings: &mut Vec<String>) {
    let section = page.lines().skip_while(|line| *line != BOUNDARIES).skip(1);
    let rows = section.take_while(|line| !line.starts_with("## ")).filter(|l| l.starts_with('|'));
    // Behind the heading and the line below it.
    let rows: Vec<&str> = rows.skip(2).collect();
    if rows.is_empty() {
        findings.push(format!("SECURITY.md: no table in the section `{BOUNDARIES}`"));
    }
    for row in rows {
        let named = row.split('`').skip(1).step_by(2).filter_map(|named| named.split_once("::"));
        let named: Vec<_> = named.collect();
        let who = row.trim_matches(['|', ' ']).split(" | ").next().unwrap_or_default();
        if named.is_empty() {
            findings.push(format!("SECURITY.md: no test holds the boundary `{who}`"));
        }
        for (file, function) in named {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            if !is_test(&text, function) {
                findings.push(format!("SECURITY.md: `{file}` has no test `{function}`"));
            }
        }
    }
}

/// Whether the attributes before the function include that of a test.
fn is_test(text: &str, function: &str) -> bool {
    let Some((before, _)) = text.split_once(&format!("fn {function}(")) else { return false };
    let attributes = before.trim_end().lines().rev();
    attributes.take_while(|line| line.trim_start().starts_with('#')).any(|l| l.contains("#[test]"))
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
