//! Unit tests of `export.rs`.

#[test]
fn root_module_has_the_symbol_abi_stable_looks_for() {
    assert_eq!(
        abi_stable::library::ROOT_MODULE_LOADER_NAME,
        "_1as_0lib_1header_0root_bmodule_bloader"
    );
}
