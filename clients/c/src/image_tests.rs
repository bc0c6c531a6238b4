//! Tests of decoding and scaling.

use super::{decode_image, resize_image};

#[test]
fn scaling_weights_pixel_centres() {
    let grey = |values: &[u8]| values.iter().flat_map(|v| [*v; 3]).collect::<Vec<_>>();
    // Twice as wide: new centres lie at a quarter and three quarters of the old ones.
    assert_eq!(resize_image(&grey(&[0, 100]), (2, 1), (4, 1)), grey(&[0, 25, 75, 100]));
    // Half as wide: between two old centres.
    assert_eq!(resize_image(&grey(&[0, 100, 50, 70]), (4, 1), (2, 1)), grey(&[50, 60]));
    assert_eq!(resize_image(&grey(&[1, 2, 3, 4]), (2, 2), (2, 2)), grey(&[1, 2, 3, 4]));
    assert_eq!(resize_image(&grey(&[9]), (1, 1), (3, 2)), grey(&[9; 6]));
}

#[test]
fn files_that_are_no_pictures_are_refused() {
    for bytes in [&b""[..], b"text", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0garbage"] {
        assert!(decode_image(bytes).is_err(), "{bytes:?}");
    }
}
