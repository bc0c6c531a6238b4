//! Unit tests of `handles.rs`.

use super::*;

struct Thing(u32);
impl Object for Thing {
    const KIND: Kind = Kind::Trace;
}

struct Other;
impl Object for Other {
    const KIND: Kind = Kind::State;
}

#[test]
fn live_object_is_found_by_its_handle() {
    let thing = create(Thing(7));
    assert_eq!(get(thing.raw()).map(|thing| thing.0), Ok(7));
    assert_eq!(free(thing.raw()).map(|thing| thing.0), Ok(7));
}

#[test]
fn freed_handle_stays_invalid_when_its_slot_is_used_again() {
    let first = create(Thing(1)).raw();
    free(first).map(drop).unwrap();
    let second = create(Thing(2)).raw();
    assert_eq!(split(first.addr()).0, split(second.addr()).0, "the slot is used again");
    assert_eq!(get(first).map(|thing| thing.0), Err(HandleFault::Freed(Kind::Trace, first.addr())));
    assert_eq!(
        free(first).map(|thing| thing.0),
        Err(HandleFault::Freed(Kind::Trace, first.addr()))
    );
    free(second).map(drop).unwrap();
}

#[test]
fn null_foreign_and_other_kinds_are_refused() {
    let is = |raw: *mut Thing| get(raw).map(|thing| thing.0).unwrap_err();
    assert_eq!(is(std::ptr::null_mut()), HandleFault::Null(Kind::Trace));
    let local = 5u64;
    let foreign = std::ptr::from_ref(&local).cast_mut().cast::<Thing>();
    assert_eq!(is(foreign), HandleFault::Foreign(Kind::Trace, foreign.addr()));
    let wild = std::ptr::without_provenance_mut(0x1234_5678);
    assert_eq!(is(wild), HandleFault::Foreign(Kind::Trace, 0x1234_5678));
    let other = create(Other).raw();
    let as_thing = other.cast::<Thing>();
    assert_eq!(is(as_thing), HandleFault::OtherKind(Kind::Trace, other.addr(), Kind::State));
    let inside = other.wrapping_byte_add(128).cast::<Thing>();
    assert!(matches!(is(inside), HandleFault::OtherKind(..) | HandleFault::Foreign(..)));
    let head = other.map_addr(|at| at & !(CHUNK - 1)).cast::<Thing>();
    assert_eq!(is(head), HandleFault::Foreign(Kind::Trace, head.addr()));
    free(other).map(drop).unwrap();
}

#[test]
fn slots_of_other_threads_are_used_again() {
    let before = *ADDING.lock().unwrap();
    for _ in 0..20 {
        let all = std::thread::spawn(|| {
            let all: Vec<_> = (0..400).map(|n| create(Thing(n)).raw().addr()).collect();
            all
        });
        for at in all.join().unwrap() {
            free(std::ptr::with_exposed_provenance_mut::<Thing>(at)).map(drop).unwrap();
        }
    }
    assert!(*ADDING.lock().unwrap() <= before + 3);
}
