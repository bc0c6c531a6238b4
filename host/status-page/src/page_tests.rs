//! Unit tests of `page.rs`.

use super::*;
use std::collections::BTreeSet;

/// What the page may weigh, all files together.
const MAX_BYTES: usize = 150 << 10;

#[test]
fn only_browsers_get_the_page() {
    for (path, accept, expected) in [
        ("/", Some("text/html,application/xhtml+xml,*/*;q=0.8"), Some("/")),
        ("/", Some("*/*"), None),
        ("/", Some("application/json"), None),
        ("/", None, None),
        ("/ui/main.js", Some("*/*"), Some("/ui/main.js")),
        ("/ui/main.js", None, Some("/ui/main.js")),
        ("/ui/", Some("text/html"), None),
        ("/ui/../main.js", Some("text/html"), None),
        ("/index.html", Some("text/html"), None),
    ] {
        assert_eq!(find_file(path, accept).map(|file| file.path), expected, "{path} {accept:?}");
    }
}

#[test]
fn the_page_is_small_and_asks_nobody_else() {
    let bytes: usize = FILES.iter().map(|file| file.text.len()).sum();
    assert!(bytes < MAX_BYTES, "{bytes}");
    for file in FILES {
        let text = file.text.replace("http://www.w3.org/2000/svg", "");
        for other in
            ["http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("]
        {
            // The clients' own addresses are made of the page's.
            let is_used = text.contains(other);
            assert!(!is_used, "{} has {other}", file.path);
        }
    }
    let html = FILES[0].text;
    assert!(!html.contains("<style") && !html.contains(" style="), "{html}");
    assert_eq!(html.matches("<script").count(), 1);
}

#[test]
fn every_file_in_the_folder_is_served_and_imported() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
    let entries = std::fs::read_dir(folder).unwrap();
    let found: BTreeSet<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let served = FILES.iter().map(|file| match file.path {
        "/" => "index.html".to_owned(),
        path => path.trim_start_matches("/ui/").to_owned(),
    });
    assert_eq!(found, served.collect::<BTreeSet<_>>());
    let texts: String = FILES.iter().map(|file| file.text).collect();
    for file in FILES.iter().filter(|file| file.path.ends_with(".js")) {
        let name = file.path.trim_start_matches("/ui/");
        let named = texts.contains(&format!("\"./{name}\"")) || texts.contains(file.path);
        assert!(named, "{name} is imported nowhere");
    }
}
