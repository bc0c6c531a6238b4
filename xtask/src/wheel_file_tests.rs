//! Unit tests of `wheel_file.rs`.

use super::*;
use std::fs;

fn member(name: &str, data: &[u8]) -> WheelMember {
    WheelMember { name: name.to_owned(), data: data.to_vec(), executable: name.ends_with(".so") }
}

#[test]
fn record_has_hash_and_size_of_each_file() {
    let members = [member("a.py", b""), member("b.py", b"abc")];
    let text = String::from_utf8(record(&members, "x.dist-info/RECORD")).unwrap();
    let expected = "a.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n\
        b.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n\
        x.dist-info/RECORD,,\n";
    assert_eq!(text, expected);
}

#[test]
fn same_files_give_same_bytes() {
    let folder = std::env::temp_dir().join(format!("wheel-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let members = [member("p/a.py", b"x = 1\n"), member("p/lib.so", b"\x7fELF")];
    let [one, two] = ["one.whl", "two.whl"].map(|name| {
        let path = folder.join(name);
        write_zip(&path, &members, true).unwrap();
        fs::read(path).unwrap()
    });
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(one, two);
    assert!(one.starts_with(b"PK\x03\x04"), "no zip archive");
}

#[test]
fn metadata_has_the_address_of_the_sources() {
    let folders = ["clients/python", "packaging/wheel"];
    for metadata in folders.map(|folder| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        fs::read_to_string(format!("{root}/{folder}/METADATA")).unwrap()
    }) {
        assert_eq!(with_address(&metadata, ""), metadata);
        let text = with_address(&metadata, "https://git.example.org/trtserver");
        let (head, _) = text.split_once("\n\n").unwrap();
        assert!(
            head.contains("\nProject-URL: Source, https://git.example.org/trtserver\n"),
            "{head}"
        );
    }
}
