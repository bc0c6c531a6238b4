//! Real numbers the way C's `%g` writes them, with just the digits needed to read them back.

pub(crate) fn format_f32(value: f32) -> String {
    format_general(&format!("{value:e}"), 6, 9)
}

pub(crate) fn format_f64(value: f64) -> String {
    format_general(&format!("{value:e}"), 15, 17)
}

/// Takes the shortest scientific form; numbers of up to `usual` digits get an exponent from there
/// on, longer ones from `most` on.
fn format_general(scientific: &str, usual: usize, most: usize) -> String {
    let (sign, plain) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    let Some((mantissa, exponent)) = plain.split_once('e') else {
        // Infinity and not-a-number, in the spelling text readers expect.
        return format!("{sign}{}", plain.to_ascii_lowercase());
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits = mantissa.replace('.', "");
    let limit = if digits.len() <= usual { usual } else { most };
    let places = exponent.unsigned_abs() as usize;
    let text = if exponent < -4 || (exponent > 0 && places >= limit) {
        let side = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{side}{places:02}")
    } else if exponent < 0 {
        format!("0.{}{digits}", "0".repeat(places - 1))
    } else if digits.len() <= places + 1 {
        format!("{digits}{}", "0".repeat(places + 1 - digits.len()))
    } else {
        let (whole, rest) = digits.split_at(places + 1);
        format!("{whole}.{rest}")
    };
    format!("{sign}{text}")
}

#[cfg(test)]
#[path = "float_format_tests.rs"]
mod tests;
