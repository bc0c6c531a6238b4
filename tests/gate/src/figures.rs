//! Compares the counted figures with their ceilings.

use crate::ceilings::Ceiling;

/// Figures per request of a row; none if not counted.
#[derive(Clone, Default)]
pub struct Figures {
    pub allocations: Option<f64>,
    pub allocated: Option<f64>,
    pub copied: Option<f64>,
    pub syscalls: Option<f64>,
    pub instructions: Option<f64>,
    pub atomics: Option<f64>,
    /// System calls by name.
    pub by_name: Vec<(String, f64)>,
}

/// Below this share of its ceiling a figure is reported, because the ceiling no longer detects
/// regressions.
const FAR_BELOW: f64 = 0.8;
/// Margin of new ceilings above the figures, which vary by a percent or two.
const MARGIN: f64 = 1.1;

type Column = (&'static str, fn(&Figures) -> Option<f64>, fn(&Ceiling) -> f64);

const COLUMNS: [Column; 6] = [
    ("allocations", |f| f.allocations, |c| c.allocations),
    ("allocated", |f| f.allocated, |c| c.allocated),
    ("copied", |f| f.copied, |c| c.copied),
    ("syscalls", |f| f.syscalls, |c| c.syscalls),
    ("instructions", |f| f.instructions, |c| c.instructions),
    ("atomics", |f| f.atomics, |c| c.atomics),
];

/// Each row with figures and ceilings, then the system calls by name.
pub fn table(ceilings: &[Ceiling], figures: &[Figures]) -> String {
    let mut text = format!("{:<12}", "a request");
    for (name, ..) in COLUMNS {
        text += &format!("{name:>14}{:>12}", "<=");
    }
    text.push('\n');
    for (ceiling, figures) in ceilings.iter().zip(figures) {
        text += &format!("{:<12}", ceiling.row);
        for (_, figure, limit) in COLUMNS {
            let shown = |number: Option<f64>| number.map_or("-".to_owned(), number_text);
            let limit = Some(limit(ceiling)).filter(|limit| !limit.is_nan());
            text += &format!("{:>14}{:>12}", shown(figure(figures)), shown(limit));
        }
        text.push('\n');
    }
    for (ceiling, figures) in ceilings.iter().zip(figures) {
        let often = figures.by_name.iter().filter(|(_, number)| *number >= 0.01);
        let list: Vec<String> = often.map(|(name, number)| format!("{name} {number:.2}")).collect();
        if !list.is_empty() {
            text += &format!("{}: {}\n", ceiling.row, list.join(", "));
        }
    }
    text
}

/// Sentences about figures above their ceilings, and about figures so far below that the ceiling
/// should be lowered.
pub fn judge(ceilings: &[Ceiling], figures: &[Figures]) -> (Vec<String>, Vec<String>) {
    let (mut above, mut far_below) = (Vec::new(), Vec::new());
    for (ceiling, figures) in ceilings.iter().zip(figures) {
        for (name, figure, limit) in COLUMNS {
            let limit = limit(ceiling);
            let Some(figure) = figure(figures).filter(|_| !limit.is_nan()) else { continue };
            let sentence = format!(
                "{}: {} {name}, the ceiling is {}",
                ceiling.row,
                number_text(figure),
                number_text(limit)
            );
            if figure > limit {
                above.push(sentence);
            } else if figure < limit * FAR_BELOW {
                far_below.push(sentence);
            }
        }
    }
    (above, far_below)
}

/// The table of `ceilings.rs` with new ceilings for these figures. Entries that were not counted or
/// have no ceiling are kept.
pub fn as_source(ceilings: &[Ceiling], figures: &[Figures]) -> String {
    let mut text = String::new();
    for (ceiling, figures) in ceilings.iter().zip(figures) {
        text += &format!("    Ceiling {{ row: \"{}\"", ceiling.row);
        for (name, figure, limit) in COLUMNS {
            let old = limit(ceiling);
            let number = match figure(figures).filter(|_| !old.is_nan()) {
                Some(figure) => source_number(figure * MARGIN),
                None if old.is_nan() => "NONE".to_owned(),
                None => source_number(old),
            };
            text += &format!(", {name}: {number}");
        }
        text += " },\n";
    }
    text
}

/// Small numbers with one decimal, large ones rounded up to three digits.
fn source_number(number: f64) -> String {
    if number < 100.0 {
        return format!("{:.1}", (number * 10.0).ceil() / 10.0);
    }
    let unit = 10f64.powf(number.log10().floor() - 2.0);
    let whole = ((number / unit).ceil() * unit) as u64;
    // In source form: 12_300.0
    let digits = whole.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join("_") + ".0"
}

fn number_text(number: f64) -> String {
    if number < 1000.0 { format!("{number:.2}") } else { format!("{number:.0}") }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
