//! "Did you mean": the flag nearest to a misspelt one.

use super::catalogue;

/// A line that names the flags `name` may stand for, each behind `dashes`; none when nothing is near.
pub fn suggestion(name: &str, dashes: &str) -> Option<String> {
    let name = name.replace('_', "-").to_ascii_lowercase();
    let names =
        || catalogue::all().flat_map(|f| std::iter::once(f.name).chain(f.aliases.iter().copied()));
    let shared: Vec<_> = names().filter(|n| !name.is_empty() && n.starts_with(&name)).collect();
    if shared.len() > 1 {
        let list: Vec<_> = shared.iter().map(|n| format!("{dashes}{n}")).collect();
        return Some(format!("It could be {}.", list.join(", ")));
    }
    let (distance, nearest) = names().map(|n| (distance(&name, n), n)).min()?;
    (distance <= 1 + name.len() / 4).then(|| format!("Did you mean {dashes}{nearest}?"))
}

/// How many letters must be put in, taken out or changed to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(&b) {
            let here = (corner + usize::from(from != *to)).min(left + 1).min(*cell + 1);
            corner = std::mem::replace(cell, here);
            left = here;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
#[path = "suggest_tests.rs"]
mod tests;
