//! Converts a PNG file to the input of the model `digits`: 8 by 8 pixels, 0.0 = white, 1.0 = black.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

pub const SIDE: usize = 8;

/// The pixels in row-major order, as little-endian FP32.
pub fn read_picture(file: &Path) -> Result<Vec<u8>, String> {
    let wrap = |problem: String| format!("{}: {problem}", file.display());
    let (grey, width, height) = to_grey(file).map_err(wrap)?;
    let values = ink_bounds(&grey, width, height).map_err(wrap)?;
    Ok(values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

/// Converts any colour type to one byte a pixel. Transparent pixels become white.
fn to_grey(file: &Path) -> Result<(Vec<u8>, usize, usize), String> {
    let open = BufReader::new(File::open(file).map_err(|e| e.to_string())?);
    let mut decoder = png::Decoder::new(open);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
    let size = reader.output_buffer_size().ok_or("too large")?;
    let mut pixels = vec![0; size];
    let frame = reader.next_frame(&mut pixels).map_err(|e| e.to_string())?;
    pixels.truncate(frame.buffer_size());

    let on_paper = |grey: u32, alpha: u32| ((grey * alpha + 255 * (255 - alpha)) / 255) as u8;
    let of_colour =
        |p: &[u8]| (u32::from(p[0]) * 299 + u32::from(p[1]) * 587 + u32::from(p[2]) * 114) / 1000;
    let grey = match frame.color_type {
        png::ColorType::Grayscale => pixels,
        png::ColorType::GrayscaleAlpha => {
            pixels.chunks_exact(2).map(|p| on_paper(p[0].into(), p[1].into())).collect()
        }
        png::ColorType::Rgb => pixels.chunks_exact(3).map(|p| of_colour(p) as u8).collect(),
        png::ColorType::Rgba => {
            pixels.chunks_exact(4).map(|p| on_paper(of_colour(p), p[3].into())).collect()
        }
        png::ColorType::Indexed => return Err("palette was not expanded".into()),
    };
    Ok((grey, frame.width as usize, frame.height as usize))
}

/// Averages blocks of pixels down to 8 by 8 and inverts them.
fn ink_bounds(grey: &[u8], width: usize, height: usize) -> Result<Vec<f32>, String> {
    if width == 0 || height == 0 || !width.is_multiple_of(SIDE) || !height.is_multiple_of(SIDE) {
        return Err(format!("{width} by {height} pixels: both must be multiples of {SIDE}"));
    }
    let (wide, high) = (width / SIDE, height / SIDE);
    let block = |index: usize| {
        let (row, column) = (index / SIDE, index % SIDE);
        let sum: f32 = (0..high)
            .flat_map(|y| (0..wide).map(move |x| (row * high + y) * width + column * wide + x))
            .map(|at| f32::from(grey[at]))
            .sum();
        1.0 - sum / (wide * high) as f32 / 255.0
    };
    Ok((0..SIDE * SIDE).map(block).collect())
}

#[cfg(test)]
#[path = "picture_tests.rs"]
mod tests;
