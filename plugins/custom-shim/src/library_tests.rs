//! Unit tests of `library.rs`.

use super::*;
use trtserver_model_files::testing::HostileModel;
use trtserver_plugin_testkit::{Backend, ModelSpec, Session, table};

#[test]
fn respelled_paths_name_the_same_file() {
    let path = Path::new("/m/1/libcustom.so");
    assert_eq!(spell(path, 0).as_os_str(), "/m/1/libcustom.so");
    assert_eq!(spell(path, 2).as_os_str(), "/m/1/././libcustom.so");
}

#[test]
fn files_outside_are_refused() {
    let _session = Session::start();
    let model = HostileModel::new(&["1"]);
    let (dir, version_dir) = (model.model(), model.model().join("1"));
    let backend =
        Backend::open(table::<crate::backend::Custom>(), "custom", "/plugins", &[]).unwrap();
    let spec = ModelSpec {
        dir: dir.display().to_string(),
        version_dir: version_dir.display().to_string(),
        ..ModelSpec::new("M")
    };
    let open = |file: &str| {
        let spec = ModelSpec { file: file.to_owned(), ..spec.clone() };
        backend.open_model(&spec).err().map(|failure| failure.text).unwrap_or_default()
    };
    assert!(!HostileModel::is_refusal(&open("own")));
    for name in model.names_of_secret().iter().filter(|name| !name.contains('\0')) {
        let text = open(name);
        assert!(HostileModel::is_refusal(&text) && text.contains("'M'"), "{name}: {text}");
    }
}
