//! Unit tests of `wire.rs`.

use super::*;

#[test]
fn fields_come_back_as_they_were_put() {
    let mut bytes = Vec::new();
    put_number(&mut bytes, 4, 300);
    put_bytes(&mut bytes, 1, b"name");
    bytes.extend([5 << 3 | 5, 1, 2, 3, 4]);
    let fields = || Fields(&bytes);
    assert_eq!((fields().number(4), fields().text(1)), (300, "name".to_owned()));
    assert_eq!(fields().map(|f| f.raw.len()).collect::<Vec<_>>(), [3, 6, 5]);
    assert_eq!(fields().nth(2).unwrap().value, Value::Fixed);
}

#[test]
fn nonsense_ends_the_reading() {
    for bytes in [&[0xff; 40][..], &[0x0a, 200, 1], &[0x0b]] {
        assert_eq!(Fields(bytes).count(), 0);
    }
}
