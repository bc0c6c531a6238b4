//! The crate page lists the statics of the host.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The most that the host may have.
const MAX: usize = 15;

/// Types of constants, which are not state.
const CONSTANTS: [&str; 4] = ["Entry =", "Extension =", "Bytes = Bytes::new()", "[["];

/// Name of a static that a line defines, unless it is a constant.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (visibility, rest) = line.split_once("static ")?;
    let (name, kind) = rest.split_once(": ")?;
    let is_item = visibility.is_empty() || visibility.starts_with("pub");
    let is_name = name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    (is_item && is_name && !CONSTANTS.iter().any(|constant| kind.contains(constant)))
        .then_some(name)
}

/// Begins the statics of one thread or one task.
fn is_local(line: &str) -> bool {
    line == "thread_local! {" || line == "tokio::task_local! {"
}

/// Statics of a file that are not of one thread or task, test code aside.
fn statics(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut end_of_local = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match end_of_local {
            Some(at) if indent <= at && line.trim_start().starts_with('}') => {
                end_of_local = None;
            }
            Some(_) => {}
            None if is_local(line.trim()) => end_of_local = Some(indent),
            None => names.extend(defined(line)),
        }
    }
    names
}

#[test]
fn statics_are_told_from_constants_and_thread_locals() {
    for (text, want) in [
        ("static A: Mutex<u8> = Mutex::new(0);", &["A"][..]),
        ("    pub(super) static A_B: Guard = Guard {", &["A_B"]),
        ("pub static A: Entry = Entry(\"x\");\nstatic B: MemoryExtension = MemoryExtension {", &[]),
        ("thread_local! {\n    static A: Cell<u8> = Cell::new(0);\n}\nstatic B: u8 = 0;", &["B"]),
        ("tokio::task_local! {\n    static A: Cell<u8>;\n}", &[]),
        ("fn plain(kind: &'static str, text: String) {}\n// A static A: it", &[]),
    ] {
        assert_eq!(statics(text), want, "{text}");
    }
}

#[test]
fn crate_page_lists_the_statics_of_the_host() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    let mut open = vec![host.to_owned()];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_test = name.contains("testing") || name.ends_with("_tests.rs");
            // Links lead to sources of other crates (`tool/sources`).
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() && name != "fuzzing" {
                open.push(path);
            } else if name.ends_with(".rs") && !is_test {
                let text = fs::read_to_string(&path).unwrap();
                let file = path.strip_prefix(host).unwrap().display().to_string();
                found.extend(statics(&text).into_iter().map(|s| format!("| `{s}` | `{file}` |")));
            }
        }
    }
    let page = fs::read_to_string(host.join("server/src/lib.rs")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("//! ")?.strip_suffix('|'));
    let rows = rows.filter(|row| row.starts_with("| `"));
    let listed: BTreeSet<String> =
        rows.map(|row| row.rsplit_once(" | ").unwrap().0.to_owned() + " |").collect();
    assert_eq!(found, listed);
    assert!(found.len() <= MAX, "{} statics, at most {MAX} are allowed", found.len());
}
