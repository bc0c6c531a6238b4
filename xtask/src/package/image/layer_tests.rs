//! Unit tests of `layer.rs`.

use super::*;

#[test]
fn base_has_no_caches_and_documents() {
    for (path, packed) in [
        ("usr/bin/curl", true),
        ("tmp", true),
        ("var/log", true),
        ("tmp/left", false),
        ("var/log/dpkg.log", false),
        ("var/lib/dpkg/status", true),
        ("var/lib/apt/lists/deb.debian.org_dists", false),
        ("usr/share/doc/curl", true),
        ("usr/share/doc/curl/copyright", true),
        ("usr/share/doc/curl/changelog.gz", false),
        ("usr/share/doc/curl/examples/copyright.c", false),
    ] {
        assert_eq!(is_packed(Path::new(path)), packed, "{path}");
    }
}

#[test]
fn layer_of_a_directory_keeps_modes_and_links() {
    let root = std::env::temp_dir().join(format!("trtserver-layer-{}", std::process::id()));
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(root.join("bin/b"), "program").unwrap();
    fs::set_permissions(root.join("bin/b"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::hard_link(root.join("bin/b"), root.join("bin/c")).unwrap();
    std::os::unix::fs::symlink("b", root.join("bin/a")).unwrap();
    let layer = Layer::from_directory("base", &root);
    let again = Layer::from_directory("base", &root);
    fs::remove_dir_all(&root).unwrap();
    let (layer, again) = (layer.unwrap(), again.unwrap());
    assert_eq!(layer.compressed, again.compressed);
    let mut tar = Vec::new();
    io::copy(&mut flate2::read::GzDecoder::new(layer.compressed.as_slice()), &mut tar).unwrap();
    assert_eq!(digest(&tar), layer.diff_id);
    let mut archive = tar::Archive::new(tar.as_slice());
    let entries = archive.entries().unwrap().map(|entry| {
        let header = entry.unwrap().header().clone();
        let path = header.path().unwrap().display().to_string();
        (path, header.entry_type(), header.mode().unwrap())
    });
    let expected = [
        ("bin/", EntryType::Directory, 0o755),
        ("bin/a", EntryType::Symlink, 0o777),
        ("bin/b", EntryType::Regular, 0o4755),
        ("bin/c", EntryType::Link, 0o4755),
    ];
    let entries: Vec<_> = entries.collect();
    assert_eq!(entries, expected.map(|(path, kind, mode)| (path.to_owned(), kind, mode)));
}
