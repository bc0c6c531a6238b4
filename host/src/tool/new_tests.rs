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
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-api/include/trtserver");
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
    let by_url = Source::find(Some(url)).unwrap();
    assert_eq!(by_url.dependency("testkit"), Ok(format!("{{ git = \"{url}\" }}")));
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let by_checkout = Source::find(Some(checkout)).unwrap();
    for (subfolder, end) in [("", "plugin-api\" }"), ("testkit", "plugin-api/testkit\" }")] {
        let dependency = by_checkout.dependency(subfolder).unwrap();
        assert!(dependency.ends_with(end), "{dependency}");
    }
    assert_eq!(Source::find(Some(&format!("{checkout}/plugin-api"))), Ok(by_checkout));
    assert!(Source::find(Some("/nowhere")).unwrap_err().contains("/nowhere"));
    assert_eq!(quoted("a\"b"), "'a\"b'");
    for files in [c("n"), cpp("n"), rust("n", &by_url).unwrap()] {
        let left =
            files.iter().find(|(_, text)| text.contains("{name}") || text.contains("addsub"));
        assert_eq!(left, None);
    }
}
