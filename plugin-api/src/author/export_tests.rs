//! Unit tests of `export.rs`.

#[test]
fn door_has_the_name_abi_stable_looks_for() {
    assert_eq!(
        abi_stable::library::ROOT_MODULE_LOADER_NAME,
        "_1as_0lib_1header_0root_bmodule_bloader"
    );
}
