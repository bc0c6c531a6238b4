//! Unit tests of `handles.rs`.

use super::*;

struct Thing(u32);
impl TypedObject for Thing {
    const KIND: ObjectKind = ObjectKind::Trace;
}

struct Other;
impl TypedObject for Other {
    const KIND: ObjectKind = ObjectKind::State;
}

#[test]
fn live_object_is_found_by_its_handle() {
    let thing = create_object(Thing(7));
    assert_eq!(get_object(thing.raw()).map(|thing| thing.0), Ok(7));
    assert_eq!(free_object(thing.raw()).map(|thing| thing.0), Ok(7));
}

#[test]
fn freed_handle_stays_invalid_when_its_slot_is_used_again() {
    let first = create_object(Thing(1)).raw();
    free_object(first).map(drop).unwrap();
    let second = create_object(Thing(2)).raw();
    assert_eq!(
        split_handle(first.addr()).0,
        split_handle(second.addr()).0,
        "the slot is used again"
    );
    assert_eq!(
        get_object(first).map(|thing| thing.0),
        Err(HandleFault::Freed(ObjectKind::Trace, first.addr()))
    );
    assert_eq!(
        free_object(first).map(|thing| thing.0),
        Err(HandleFault::Freed(ObjectKind::Trace, first.addr()))
    );
    free_object(second).map(drop).unwrap();
}

#[test]
fn null_foreign_and_other_kinds_are_refused() {
    let is = |raw: *mut Thing| get_object(raw).map(|thing| thing.0).unwrap_err();
    assert_eq!(is(std::ptr::null_mut()), HandleFault::Null(ObjectKind::Trace));
    let local = 5u64;
    let foreign = std::ptr::from_ref(&local).cast_mut().cast::<Thing>();
    assert_eq!(is(foreign), HandleFault::Foreign(ObjectKind::Trace, foreign.addr()));
    let wild = std::ptr::without_provenance_mut(0x1234_5678);
    assert_eq!(is(wild), HandleFault::Foreign(ObjectKind::Trace, 0x1234_5678));
    let other = create_object(Other).raw();
    let as_thing = other.cast::<Thing>();
    assert_eq!(
        is(as_thing),
        HandleFault::OtherKind(ObjectKind::Trace, other.addr(), ObjectKind::State)
    );
    let inside = other.wrapping_byte_add(128).cast::<Thing>();
    assert!(matches!(is(inside), HandleFault::OtherKind(..) | HandleFault::Foreign(..)));
    let head = other.map_addr(|at| at & !(CHUNK - 1)).cast::<Thing>();
    assert_eq!(is(head), HandleFault::Foreign(ObjectKind::Trace, head.addr()));
    free_object(other).map(drop).unwrap();
}

#[test]
fn slots_of_other_threads_are_used_again() {
    let before = *ADDING.lock().unwrap();
    for _ in 0..20 {
        let all = std::thread::spawn(|| {
            let all: Vec<_> = (0..400).map(|n| create_object(Thing(n)).raw().addr()).collect();
            all
        });
        for at in all.join().unwrap() {
            free_object(std::ptr::with_exposed_provenance_mut::<Thing>(at)).map(drop).unwrap();
        }
    }
    assert!(*ADDING.lock().unwrap() <= before + 3);
}
