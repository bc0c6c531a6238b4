//! Unit tests of `picture.rs`.

use super::*;

#[test]
fn white_is_zero_and_black_is_one() {
    let mut grey = vec![255; 16 * 16];
    for y in 0..2 {
        for x in 14..16 {
            grey[y * 16 + x] = 0;
        }
    }
    let ink = ink_bounds(&grey, 16, 16).unwrap();
    assert_eq!(ink[7], 1.0);
    assert_eq!(ink.iter().sum::<f32>(), 1.0);
}

#[test]
fn size_not_divisible_by_eight_is_refused() {
    let problem = ink_bounds(&[0; 30 * 28], 30, 28).unwrap_err();
    assert!(problem.contains("30 by 28"), "{problem}");
}

#[test]
fn sample_pictures_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/digits/pictures");
    for file in folder.read_dir().unwrap() {
        assert_eq!(read_picture(&file.unwrap().path()).unwrap().len(), 64 * 4);
    }
}
