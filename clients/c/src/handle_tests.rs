//! Tests of handles.

use super::{Handle, Object};
use std::sync::Arc;

struct Apple;
struct Pear;

impl Object for Apple {
    const NAME: &'static str = "apple";
}

impl Object for Pear {
    const NAME: &'static str = "pear";
}

#[test]
fn null_released_and_foreign_handles_are_refused() {
    let text =
        |handle: Handle<Apple>| handle.get().err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(text(Handle::NULL), "the handle of the apple is NULL");
    let apple = Handle::new(Arc::new(Apple));
    assert!(apple.get().is_ok());
    let as_pear: Handle<Pear> = Handle(apple.0, std::marker::PhantomData);
    assert!(as_pear.get().is_err());
    assert!(as_pear.release().is_none(), "a wrong type releases nothing");
    assert!(apple.release().is_some());
    assert!(apple.release().is_none());
    // The slot is used for another object, which the old handle does not name.
    let next = Handle::new(Arc::new(Apple));
    assert_eq!(text(apple), "the handle is of no apple, or the apple was released");
    next.release();
}
