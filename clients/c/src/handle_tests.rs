//! Tests of handles.

use super::{HandleObject, ObjectHandle};
use std::sync::Arc;

struct Apple;
struct Pear;

impl HandleObject for Apple {
    const NAME: &'static str = "apple";
}

impl HandleObject for Pear {
    const NAME: &'static str = "pear";
}

#[test]
fn null_released_and_foreign_handles_are_refused() {
    let text =
        |handle: ObjectHandle<Apple>| handle.get().err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(text(ObjectHandle::NULL), "the handle of the apple is NULL");
    let apple = ObjectHandle::new(Arc::new(Apple));
    assert!(apple.get().is_ok());
    let as_pear: ObjectHandle<Pear> = ObjectHandle(apple.0, std::marker::PhantomData);
    assert!(as_pear.get().is_err());
    assert!(as_pear.release().is_none(), "a wrong type releases nothing");
    assert!(apple.release().is_some());
    assert!(apple.release().is_none());
    // The slot is used for another object, which the old handle does not name.
    let next = ObjectHandle::new(Arc::new(Apple));
    assert_eq!(text(apple), "the handle is of no apple, or the apple was released");
    next.release();
}
