//! Pictures for clients of image models: reading PNG and JPEG, bilinear scaling.

use crate::arguments::{read_array, read_text, result_place};
use crate::buffer::BufferOwner;
use crate::failure::{ClientFailure, ErrorObject, Outcome, guard_call, ignore_panic};
use crate::handle::ObjectHandle;
use png::{ColorType, Transformations};
use std::ffi::c_char;
use std::io::Cursor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Largest width and height: a picture needs no more than 3 GiB.
const MAX_SIDE: usize = 32_768;

#[repr(C)]
pub struct RawImage {
    width: u32,
    height: u32,
    pixels: *const u8,
    owner: ObjectHandle<BufferOwner>,
}

/// Pixels in rows, three bytes each.
struct Pixels {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Pixels {
    fn keep(self) -> RawImage {
        let (owner, pixels) = BufferOwner::keep(self.rgb);
        RawImage { width: self.width as u32, height: self.height as u32, pixels, owner }
    }
}

fn decode_image(bytes: &[u8]) -> Result<Pixels, String> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => decode_png(bytes),
        [0xff, 0xd8, ..] => decode_jpeg(bytes),
        _ => Err("it is neither a PNG nor a JPEG file".to_owned()),
    }
}

fn decode_png(bytes: &[u8]) -> Result<Pixels, String> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    // Palettes and fewer bits than 8 become RGB or grey with 8 bits, 16 bits become 8.
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
    let info = reader.info();
    check_size(info.width as usize, info.height as usize)?;
    let size = reader.output_buffer_size().ok_or("it is too large")?;
    let mut data = vec![0; size];
    let frame = reader.next_frame(&mut data).map_err(|e| e.to_string())?;
    data.truncate(frame.buffer_size());
    let rgb = match frame.color_type {
        ColorType::Rgb => data,
        ColorType::Rgba => {
            data.as_chunks::<4>().0.iter().flat_map(|p| [p[0], p[1], p[2]]).collect()
        }
        ColorType::Grayscale => data.iter().flat_map(|grey| [*grey; 3]).collect(),
        ColorType::GrayscaleAlpha => {
            data.as_chunks::<2>().0.iter().flat_map(|p| [p[0]; 3]).collect()
        }
        ColorType::Indexed => return Err("its palette cannot be applied".to_owned()),
    };
    Ok(Pixels { width: frame.width as usize, height: frame.height as usize, rgb })
}

fn decode_jpeg(bytes: &[u8]) -> Result<Pixels, String> {
    let options = DecoderOptions::new_safe()
        .jpeg_set_out_colorspace(ColorSpace::RGB)
        .set_max_width(MAX_SIDE)
        .set_max_height(MAX_SIDE);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    let rgb = decoder.decode().map_err(|e| format!("{e:?}"))?;
    let (width, height) = decoder.dimensions().ok_or("it has no dimensions")?;
    if rgb.len() != width * height * 3 {
        return Err("its colours cannot be converted to RGB".to_owned());
    }
    Ok(Pixels { width, height, rgb })
}

fn check_size(width: usize, height: usize) -> Result<(), String> {
    if (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height) {
        return Ok(());
    }
    Err(format!("its size is {width} x {height}, expected at most {MAX_SIDE} x {MAX_SIDE}"))
}

/// Scales by weighting the four pixels around the place that each new pixel's centre has in the old
/// picture.
fn resize_image(rgb: &[u8], from: (usize, usize), to: (usize, usize)) -> Vec<u8> {
    let columns = filter_weights(from.0, to.0);
    let mut out = Vec::with_capacity(to.0 * to.1 * 3);
    for (top, bottom, down) in filter_weights(from.1, to.1) {
        let (upper, lower) = (&rgb[top * from.0 * 3..], &rgb[bottom * from.0 * 3..]);
        for (left, right, across) in &columns {
            for colour in 0..3 {
                let at = |row: &[u8], column: usize| f32::from(row[column * 3 + colour]);
                let mix = |row: &[u8]| at(row, *left) * (1.0 - across) + at(row, *right) * across;
                let value = mix(upper) * (1.0 - down) + mix(lower) * down;
                out.push(value.round() as u8);
            }
        }
    }
    out
}

/// For each new position the two old ones around it, and the weight of the second.
fn filter_weights(from: usize, to: usize) -> Vec<(usize, usize, f32)> {
    let scale = from as f64 / to as f64;
    let place = |new: usize| {
        let old = ((new as f64 + 0.5) * scale - 0.5).clamp(0.0, (from - 1) as f64);
        let first = old.floor() as usize;
        (first, (first + 1).min(from - 1), (old - first as f64) as f32)
    };
    (0..to).map(place).collect()
}

/// # Safety
/// The pointers are as the header describes them, here and below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_image_read(
    path: *const c_char,
    image: *mut RawImage,
) -> ObjectHandle<ErrorObject> {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (path, place) =
            unsafe { (read_text(path, "the path")?, result_place(image, "image")?) };
        let bytes = std::fs::read(path)
            .map_err(|e| ClientFailure::File(format!("cannot read the picture {path}: {e}")))?;
        let pixels = decode_image(&bytes)
            .map_err(|e| ClientFailure::File(format!("cannot read the picture {path}: {e}")))?;
        place.write(pixels.keep());
        Ok(())
    })
}

/// # Safety
/// See [`trtc_image_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_image_resize(
    image: *const RawImage,
    width: u32,
    height: u32,
    resized: *mut RawImage,
) -> ObjectHandle<ErrorObject> {
    guard_call(|| {
        // SAFETY: the contract of this function.
        let (image, place) =
            unsafe { (read_array(image, 1, "image")?, result_place(resized, "resized")?) };
        place.write(scale_pixels(&image[0], width as usize, height as usize)?.keep());
        Ok(())
    })
}

fn scale_pixels(image: &RawImage, width: usize, height: usize) -> Outcome<Pixels> {
    let owner = image.owner.get()?;
    let from = (image.width as usize, image.height as usize);
    if from.0 * from.1 * 3 != owner.bytes().len() || owner.bytes().is_empty() {
        return Err(ClientFailure::argument(format!(
            "the picture has {} bytes, expected {} x {} pixels of 3 bytes",
            owner.bytes().len(),
            from.0,
            from.1
        )));
    }
    check_size(width, height)
        .map_err(|e| ClientFailure::argument(format!("the picture cannot be scaled: {e}")))?;
    Ok(Pixels { width, height, rgb: resize_image(owner.bytes(), from, (width, height)) })
}

/// # Safety
/// `image` is NULL or points to a picture that a call returned, or a zeroed one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trtc_image_free(image: *mut RawImage) {
    if image.is_null() {
        return;
    }
    // SAFETY: the contract of this function.
    let image = unsafe { &mut *image };
    ignore_panic((), || drop(image.owner.release()));
    *image = RawImage { width: 0, height: 0, pixels: std::ptr::null(), owner: ObjectHandle::NULL };
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
