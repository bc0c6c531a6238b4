//! Error texts of the library, without the places in its source code.

/// Lines of an error text that say where in the library it arose.
const PLACES: [&str; 3] = ["Exception from ", "Check '", "Exception during "];

/// The sentences of an error text in one line. Empty if it has none.
pub fn clean_message(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !is_place(line));
    let mut sentences: Vec<&str> = Vec::new();
    for line in lines {
        // Each layer of the library may repeat the text of the one below.
        if !sentences.contains(&line) {
            sentences.push(line);
        }
    }
    sentences.join(" ")
}

fn is_place(line: &str) -> bool {
    PLACES.iter().any(|start| line.starts_with(start)) && line.ends_with(':')
}

/// Major version of a build number such as `2026.4.1-22982-85af7d2e43e`.
pub fn major_version(build: &str) -> Option<u32> {
    build.split('.').next()?.parse().ok()
}

/// The version of a build number, without what identifies the build.
pub fn short_version(build: &str) -> &str {
    build.split('-').next().unwrap_or(build)
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
