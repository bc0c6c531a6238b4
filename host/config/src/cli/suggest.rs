//! "Did you mean": the flag nearest to a misspelled one.

use super::catalogue;

/// Names the flags that `name` abbreviates, or the nearest flag, prefixed with `dashes`. `None` if
/// no flag is near.
pub fn suggest_flag(name: &str, dashes: &str) -> Option<String> {
    let name = name.replace('_', "-").to_ascii_lowercase();
    let names = || {
        catalogue::all_flags()
            .flat_map(|f| std::iter::once(f.name).chain(f.aliases.iter().copied()))
    };
    let shared: Vec<_> = names().filter(|n| !name.is_empty() && n.starts_with(&name)).collect();
    if shared.len() > 1 {
        let list: Vec<_> = shared.iter().map(|n| format!("{dashes}{n}")).collect();
        return Some(format!("It could be {}.", list.join(", ")));
    }
    let (distance, nearest) = names().map(|n| (strsim::levenshtein(&name, n), n)).min()?;
    (distance <= 1 + name.len() / 4).then(|| format!("Did you mean {dashes}{nearest}?"))
}

#[cfg(test)]
#[path = "suggest_tests.rs"]
mod tests;
