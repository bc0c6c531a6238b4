//! Circles of files in `host/src` that use each other: each is listed with its reason in ARCHITECTURE.md, in the table below
//! the line `<!-- circles -->`.
//!
//! A file uses the file that defines what it names; re-exports are followed to it. A `pub use` alone is no use, and unit
//! tests do not count.

use super::arrows::{quoted, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub const MARK: &str = "<!-- circles -->";

/// The path of a module: `["scheduler", "queue"]`.
type Module = Vec<String>;

/// Files by module, and what they use.
#[derive(Default)]
pub struct Circles(BTreeMap<Module, Source>);

#[derive(Default)]
struct Source {
    file: String,
    /// Modules declared here that have a file.
    children: BTreeSet<String>,
    /// All imports, by the name they have here.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths used here.
    used: Vec<Vec<String>>,
}

impl Circles {
    /// Adds a file; `inside` is its path below `host/src`.
    pub fn add(&mut self, inside: &Path, text: &str) {
        let file = inside.to_string_lossy().into_owned();
        if file.ends_with("_tests.rs") || file.ends_with("testing.rs") || file == "main.rs" {
            return;
        }
        let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let module = path.split('/').filter(|m| *m != "lib").map(str::to_owned).collect();
        self.0.insert(module, Source { file, ..Source::read(text) });
    }

    /// Compares the circles with the table in `page`.
    pub fn check(&self, page: &str, findings: &mut Vec<String>) {
        let listed: BTreeSet<_> = rows(page, MARK).map(|row| quoted(row[0])).collect();
        let found = self.find();
        let list = |circle: &BTreeSet<String>| Vec::from_iter(circle.iter().cloned()).join(", ");
        findings.extend(found.difference(&listed).map(|circle| {
            format!("host/src: a circle that ARCHITECTURE.md does not list: {}", list(circle))
        }));
        let gone = listed.difference(&found).filter(|circle| !circle.is_empty());
        findings.extend(gone.map(|circle| {
            format!("ARCHITECTURE.md lists a circle that does not exist: {}", list(circle))
        }));
    }

    /// The files of each circle.
    fn find(&self) -> BTreeSet<BTreeSet<String>> {
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            self.0.keys().map(|module| (module, self.reach(module))).collect();
        let circles = reached.iter().filter(|(module, reached)| reached.contains(**module));
        circles
            .map(|(module, all)| {
                let mutual = all.iter().filter(|other| reached[other].contains(*module));
                mutual.map(|other| self.0[other].file.clone()).collect()
            })
            .collect()
    }

    /// All files that this one uses, directly or not.
    fn reach(&self, module: &Module) -> BTreeSet<Module> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![module.clone()]);
        while let Some(module) = open.pop() {
            for path in &self.0[&module].used {
                let target = self.absolute(&module, path).and_then(|p| self.definition(&p, 0));
                if let Some(target) = target.filter(|target| *target != module)
                    && reached.insert(target.clone())
                {
                    open.push(target);
                }
            }
        }
        reached
    }

    /// A path of `module`, from the root of the crate; `None` for paths of other crates.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let (base, rest) = match path.first()?.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (module, &path[1..]),
            "super" => (&module[..module.len().checked_sub(supers)?], &path[supers..]),
            child if self.0.get(module)?.children.contains(child) => (module, path),
            _ => return None,
        };
        Some([base, rest].concat())
    }

    /// The module whose file defines what `path` names.
    fn definition(&self, path: &[String], depth: usize) -> Option<Module> {
        let (module, rest) = (0..=path.len())
            .rev()
            .map(|n| path.split_at(n))
            .find(|(module, _)| self.0.contains_key(*module))?;
        let exported = || {
            let import = self.0[module].imports.get(rest.first()?)?;
            let path = [self.absolute(module, import)?, rest[1..].to_vec()].concat();
            // Limited, because a module and what it re-exports may have the same name.
            if depth < 8 { self.definition(&path, depth + 1) } else { None }
        };
        exported().or_else(|| Some(module.to_vec()))
    }
}

impl Source {
    fn read(text: &str) -> Self {
        let mut source = Self::default();
        let (mut body, mut exports) = (String::new(), Vec::new());
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        // `pub(in crate::x)` is no use.
        let code =
            code.collect::<Vec<_>>().join("\n").replace("(in crate", "(").replace("(in super", "(");
        for statement in code.split(';') {
            let begin =
                statement.rfind("\nuse ").or_else(|| statement.rfind(" use ")).map(|at| at + 1);
            let begin = begin.or_else(|| statement.starts_with("use ").then_some(0));
            let last = statement.rsplit('\n').next().unwrap_or_default();
            if let Some(begin) = begin {
                let (before, import) = statement.split_at(begin);
                let public = before
                    .trim_end()
                    .rsplit('\n')
                    .next()
                    .is_some_and(|b| b.trim_start().starts_with("pub"));
                body.push_str(before);
                for (name, path) in expand(&[], &import["use ".len()..]) {
                    if public {
                        exports.push((name.clone(), path.clone()));
                    } else {
                        source.used.push(path.clone());
                    }
                    source.imports.insert(name, path);
                }
            } else if let Some((_, child)) = last.split_once("mod ").filter(|(_, m)| is_name(m)) {
                source.children.insert(child.to_owned());
            } else {
                body.push_str(statement);
                body.push(';');
            }
        }
        let words =
            BTreeSet::from_iter(body.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()));
        let used = exports.into_iter().filter(|(name, _)| words.contains(name.as_str()));
        source.used.extend(used.map(|(_, path)| path));
        let paths = body.split(|c: char| c != '_' && c != ':' && !c.is_ascii_alphanumeric());
        source.used.extend(paths.filter(|p| p.contains("::")).map(parts));
        source
    }
}

/// The names that a `use` makes known, with their paths.
fn expand(prefix: &[String], tree: &str) -> Vec<(String, Vec<String>)> {
    let Some((head, inner)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path = [prefix.to_vec(), parts(path)].concat();
        path.pop_if(|last| *last == "self" && !prefix.is_empty());
        let last = path.last().cloned().unwrap_or_default();
        return vec![(if name.is_empty() { last } else { name.trim().to_owned() }, path)];
    };
    let prefix = [prefix.to_vec(), parts(head)].concat();
    let (mut names, mut depth, mut begin) = (Vec::new(), 0, 0);
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[begin..at].trim().is_empty() {
                    names.extend(expand(&prefix, &inner[begin..at]));
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
    names
}

fn parts(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

#[cfg(test)]
#[path = "circles_tests.rs"]
mod tests;
