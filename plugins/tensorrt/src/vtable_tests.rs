//! Unit tests of `vtable.rs`.

use super::*;

#[test]
fn structs_have_the_layout_of_the_headers() {
    assert_eq!(size_of::<Dims32>(), 36);
    assert_eq!(size_of::<Dims64>(), 72);
    assert_eq!(std::mem::offset_of!(Dims64, d), 8);
    assert_eq!(size_of::<Weights>(), 24);
    assert_eq!(size_of::<InterfaceInfo>(), 16);
}

#[test]
fn shape_of_invalid_dims_is_none() {
    let invalid = Dims64 { n: -1, d: [0; 8] };
    assert_eq!(Option::<TensorShape>::from(invalid), None);
    let too_many = Dims32 { n: 9, d: [1; 8] };
    assert_eq!(Option::<TensorShape>::from(too_many), None);
}

#[test]
fn dimension_above_32_bits_is_refused_for_major_8() {
    let shape = TensorShape::new(&[1, 1 << 40]).expect("two dimensions");
    assert!(shape.to_32().is_none());
    assert_eq!(Option::<TensorShape>::from(shape.to_64()), Some(shape));
}

#[test]
fn shape_keeps_at_most_eight_dimensions() {
    assert!(TensorShape::new(&[1; 9]).is_none());
    assert!(TensorShape::new(&[2; 8]).is_some());
}

#[test]
fn rows_replace_the_batch_dimension() {
    let shape = TensorShape::new(&[-1, 3]).expect("two dimensions");
    assert_eq!(shape.with_rows(Some(4)).dims(), [4, 3]);
    assert_eq!(shape.with_rows(None), shape);
    assert_eq!(TensorShape::default().with_rows(Some(4)).dims(), [0; 0]);
}

#[test]
fn table_calls_the_function_of_a_slot() {
    unsafe extern "C" fn add(this: Raw, n: i32) -> i32 {
        // SAFETY: the test's object.
        n + unsafe { (*this.cast::<Object>()).value }
    }
    #[repr(C)]
    struct Object {
        table: *const *const (),
        value: i32,
    }
    let table = MethodTable::new(&[(Some(2), add as *const ()), (None, add as *const ())]);
    let mut object = Object { table: table.pointer(), value: 40 };
    let raw: Raw = (&raw mut object).cast();
    // SAFETY: slot 2 is `add`, slot 0 does nothing.
    unsafe {
        assert_eq!(method_entry::<unsafe extern "C" fn(Raw, i32) -> i32>(raw, 2)(raw, 2), 42);
        assert_eq!(method_entry::<unsafe extern "C" fn(Raw) -> usize>(raw, 0)(raw), 0);
    }
    assert!(!object.table.is_null());
}
