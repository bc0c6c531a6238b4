//! Unit tests of `class_labels.rs`.

use super::*;

#[test]
fn each_line_is_a_label() {
    let rows: &[(&str, &[&str])] = &[
        ("cat\ndog\n", &["cat", "dog"]),
        ("cat\ndog", &["cat", "dog"]),
        ("cat\r\ndog\r\n", &["cat", "dog"]),
        ("cat\r", &["cat"]),
        ("a\rb\n", &["a\rb"]),
        ("cat\n\n dog \n\n", &["cat", "", " dog ", ""]),
        ("\n\n\n", &["", "", ""]),
        ("\n", &[""]),
        ("", &[]),
    ];
    for (text, labels) in rows {
        let found = ClassLabels::from_lines((*text).to_owned()).unwrap();
        let all: Vec<&str> = (0..found.len()).filter_map(|index| found.get(index)).collect();
        assert_eq!(all, *labels, "{text:?}");
        assert_eq!(found.get(labels.len()), None);
    }
}
