//! Unit tests of `table.rs`.

use super::*;

#[test]
fn other_majors_and_newer_minors_are_refused() {
    assert_eq!(check_version(ABI_MAJOR, ABI_MINOR), Ok(()));
    for (major, minor) in [(ABI_MAJOR + 1, 0), (ABI_MAJOR - 1, 0), (ABI_MAJOR, ABI_MINOR + 1)] {
        let why = check_version(major, minor).unwrap_err();
        assert!(why.starts_with(&format!("built for plugin interface {major}.{minor}, ")), "{why}");
    }
}

#[test]
fn small_tables_are_refused_with_both_sizes() {
    let size = size_of::<BackendTable>() as u64;
    let head = |size| TableHead { size, major: ABI_MAJOR, minor: ABI_MINOR };
    assert_eq!(check_head(&head(size)), Ok(()));
    assert_eq!(check_head(&head(size + 8)), Ok(()), "a later minor version");
    let why = check_head(&head(size - 8)).unwrap_err();
    assert!(
        why.contains(&format!("{} bytes", size - 8)) && why.contains(&format!("has {size}")),
        "{why}"
    );
}

#[test]
fn every_required_entry_is_named_when_it_is_null() {
    let mut words = [usize::MAX; size_of::<BackendTable>() / size_of::<usize>()];
    // SAFETY: numbers of the size of a table.
    let check = |words: &[usize]| unsafe { check_entries(words.as_ptr().cast()) };
    let entries = offset_of!(BackendTable, backend_info) / size_of::<usize>();
    let optional = offset_of!(BackendTable, get_extension) / size_of::<usize>();
    for at in entries..words.len() {
        words[at] = 0;
        assert_eq!(check(&words).is_ok(), at == optional, "entry {at}: {:?}", check(&words));
        words[at] = usize::MAX;
    }
    assert_eq!(check(&words), Ok(()));
}
