//! Unit tests of `new.rs`.

use super::*;

#[test]
fn names() {
    for good in ["a", "hello", "My_Backend2"] {
        assert_eq!(check_name(good), Ok(()), "{good}");
    }
    for (bad, why) in [
        ("", "it is empty"),
        ("2d", "it begins with '2'"),
        ("_x", "it begins with '_'"),
        ("a-b", "it contains '-'"),
        ("../up", "it contains '.'"),
        ("größe", "it contains 'ö'"),
        ("ensemble", "the server has a backend"),
        (&"x".repeat(65), "it has 65 characters"),
    ] {
        let text = check_name(bad).unwrap_err();
        assert!(text.contains(why) && text.contains("letters, digits and _"), "{text}");
    }
}

#[test]
fn every_header_is_embedded() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin-api/include/trtserver");
    let listed = |folder: &str| {
        let entries = std::fs::read_dir(include.join(folder)).unwrap().map(|e| e.unwrap());
        let files = entries.filter(|e| e.file_type().unwrap().is_file());
        files.map(|e| format!("{folder}{}", e.file_name().display())).collect::<Vec<_>>()
    };
    for path in listed("").into_iter().chain(listed("cpp/")) {
        let all = C_HEADERS.iter().chain(CPP_HEADERS);
        assert_eq!(all.filter(|(p, _)| *p == path).count(), 1, "{path}");
    }
}

#[test]
fn dependencies() {
    let url = "https://example.com/server.git";
    let by_url = InterfaceSource::find(Some(url)).unwrap();
    assert_eq!(by_url.dependency("testkit"), Ok(format!("{{ git = \"{url}\" }}")));
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let by_checkout = InterfaceSource::find(Some(checkout)).unwrap();
    for (subfolder, end) in [("", "plugin-api\" }"), ("testkit", "plugin-api/testkit\" }")] {
        let dependency = by_checkout.dependency(subfolder).unwrap();
        assert!(dependency.ends_with(end), "{dependency}");
    }
    assert_eq!(InterfaceSource::find(Some(&format!("{checkout}/plugin-api"))), Ok(by_checkout));
    assert!(InterfaceSource::find(Some("/nowhere")).unwrap_err().contains("/nowhere"));
    assert_eq!(quoted("a\"b"), "'a\"b'");
    let vendored = rust("n", &InterfaceSource::Vendored).unwrap();
    let own = vendored.into_iter().filter(|(path, _)| !path.starts_with(VENDOR)).collect();
    let around = framework::framework_project("n", &by_url).unwrap();
    for files in [c("n"), cpp("n"), rust("n", &by_url).unwrap(), own, around] {
        let left = files.iter().find(|(path, text)| {
            let outside = path == "Cargo.toml" && text.contains("../");
            let template = ["{name}", "addsub", "rust_framework", "{about}"];
            template.iter().any(|word| text.contains(word)) || outside
        });
        assert_eq!(left, None);
    }
}

/// Below `folder`, relative to it.
fn listed(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name().display().to_string();
        if entry.file_type().unwrap().is_dir() {
            found.extend(listed(&entry.path()).into_iter().map(|path| format!("{name}/{path}")));
        } else {
            found.push(name);
        }
    }
    found
}

/// The manifest of a packed crate: it needs neither a workspace nor what tests need.
#[track_caller]
fn expect_manifest(text: &str, name: &str, keys: &[&str]) {
    let manifest: toml::Table = text.parse().unwrap();
    assert_eq!(manifest["package"]["name"].as_str(), Some(name));
    assert_eq!(manifest["package"]["license"].as_str(), Some("Apache-2.0"));
    assert_eq!(manifest.keys().collect::<Vec<_>>(), keys);
    assert!(!manifest.to_string().contains("workspace"), "{manifest}");
}

/// The text of a packed file.
#[track_caller]
fn text<'a>(files: &'a [(String, String)], path: &str) -> &'a str {
    let found = files.iter().find(|(p, _)| p == path);
    &found.unwrap_or_else(|| panic!("{path} is missing")).1
}

#[test]
fn crates_of_the_interface_are_contained_and_need_no_workspace() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin-api");
    let files = interface::interface_files().unwrap();
    for folder in ["src", "testkit/src"] {
        for path in listed(&crates.join(folder)) {
            let path = format!("{folder}/{path}");
            assert_eq!(text(&files, &path), std::fs::read_to_string(crates.join(&path)).unwrap());
        }
    }
    for (folder, name) in [("", PLUGIN_API), ("testkit/", "trtserver-plugin-testkit")] {
        assert!(text(&files, &format!("{folder}LICENSE")).contains("Apache License"));
        let manifest = text(&files, &format!("{folder}Cargo.toml"));
        expect_manifest(manifest, name, &["dependencies", "package"]);
    }
}

#[test]
fn crates_of_frameworks_are_contained_and_need_no_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = interface::framework_files().unwrap();
    for (folder, name, keys) in [
        (
            "plugins/framework",
            "trtserver-plugin-framework",
            &["dependencies", "lib", "package"][..],
        ),
        ("model-files", "trtserver-model-files", &["dependencies", "features", "package"]),
        ("proto/wire", "trtserver-proto-wire", &["package"]),
    ] {
        for path in listed(&root.join(folder).join("src")) {
            let path = format!("{folder}/src/{path}");
            assert_eq!(text(&files, &path), std::fs::read_to_string(root.join(&path)).unwrap());
        }
        assert!(text(&files, &format!("{folder}/LICENSE")).contains("Apache License"));
        let manifest = text(&files, &format!("{folder}/Cargo.toml"));
        expect_manifest(manifest, name, keys);
        // Each path leads to a crate of the project.
        let manifest: toml::Table = manifest.parse().unwrap();
        for path in
            manifest.get("dependencies").and_then(|all| all.as_table()).into_iter().flatten()
        {
            let Some(path) = path.1.get("path").and_then(|path| path.as_str()) else { continue };
            assert!(root.join(folder).join(path).join("Cargo.toml").exists(), "{path}");
        }
    }
}
