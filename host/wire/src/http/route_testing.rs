//! Compares the routes of a frontend with the tables `method | path` of its compatibility page.
//!
//! The router is code, so its routes are found by asking it: every path that is made of the words
//! in its source and is close to a known one.

use http::Method;
use std::collections::BTreeSet;
use trtserver_base::compatibility_testing::{Row, rows};

/// A path of the page, without optional parts. `{name}` stands for any segment, or for a number.
struct Route {
    method: Method,
    segments: Vec<String>,
    place: String,
}

const NUMBERS: &[&str] = &["{version}", "{offset}", "{size}", "{device}"];

impl Route {
    fn matches(&self, method: &Method, path: &str) -> bool {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let fits = |(want, got): (&String, &&str)| {
            if NUMBERS.contains(&want.as_str()) {
                got.bytes().all(|b| b.is_ascii_digit())
            } else {
                want == got || want.starts_with('{')
            }
        };
        self.method == *method
            && self.segments.len() == segments.len()
            && self.segments.iter().zip(&segments).all(fits)
    }

    /// A path of this route.
    fn example(&self) -> Vec<&str> {
        let segments = self.segments.iter().map(|segment| match segment.as_str() {
            number if NUMBERS.contains(&number) => "1",
            name if name.starts_with('{') => "NAME",
            word => word,
        });
        segments.collect()
    }
}

/// The routes of a row: each of its paths without its optional part and with it.
fn routes(row: &Row) -> Vec<Route> {
    let [method] = row.names("method") else { panic!("{}: one method", row.place) };
    let mut found = Vec::new();
    for path in row.names("path") {
        let whole = path.replace(['[', ']'], "");
        let without = path.split('[').next().unwrap_or_default();
        let rest = path.split(']').nth(1).unwrap_or_default();
        for path in BTreeSet::from([whole, format!("{without}{rest}")]) {
            let segments = path.split('/').skip(1).map(str::to_owned).collect();
            let method = method.parse().unwrap();
            found.push(Route { method, segments, place: row.place.clone() });
        }
    }
    found
}

/// Paths of up to three words below `root`, and of up to two words behind every beginning of a
/// route.
fn paths(root: &str, routes: &[Route], source: &str) -> BTreeSet<String> {
    let mut words: BTreeSet<&str> = BTreeSet::from(["NAME", "1"]);
    for literal in source.split('"').skip(1).step_by(2) {
        let plain = |word: &&str| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        };
        words.extend(literal.split('/').filter(plain));
    }
    assert!(words.len() > 10, "{words:?}");
    let mut beginnings: BTreeSet<String> = BTreeSet::new();
    for route in routes {
        let example = route.example();
        beginnings.extend((1..=example.len()).map(|n| format!("/{}", example[..n].join("/"))));
    }
    beginnings.extend(words.iter().map(|word| format!("{root}/{word}")));
    let longer = |paths: &BTreeSet<String>| -> BTreeSet<String> {
        paths.iter().flat_map(|path| words.iter().map(move |w| format!("{path}/{w}"))).collect()
    };
    let one = longer(&beginnings);
    let two = longer(&one);
    beginnings.into_iter().chain(one).chain(two).collect()
}

/// Every path that `accepted` accepts below `root` is on the page, and the router accepts every
/// path of the page. `source` is the router's source.
pub fn compare(page: &str, root: &str, source: &str, accepted: impl Fn(&Method, &str) -> bool) {
    let rows = rows(page);
    let rows = rows.iter().filter(|row| !row.names("path").is_empty());
    let routes: Vec<Route> = rows.flat_map(routes).collect();
    compare_routes(&format!("docs/compatibility/{page}"), &routes, root, source, accepted);
}

/// The same for a table of methods and paths, whose optional parts are written out. `place` says in
/// a failure which table it is.
pub fn compare_table(
    place: &str,
    table: &[(&str, String)],
    root: &str,
    source: &str,
    accepted: impl Fn(&Method, &str) -> bool,
) {
    let route = |(method, path): &(&str, String)| Route {
        method: method.parse().unwrap(),
        segments: path.split('/').skip(1).map(str::to_owned).collect(),
        place: place.to_owned(),
    };
    let routes: Vec<Route> = table.iter().map(route).collect();
    compare_routes(place, &routes, root, source, accepted);
}

fn compare_routes(
    place: &str,
    routes: &[Route],
    root: &str,
    source: &str,
    accepted: impl Fn(&Method, &str) -> bool,
) {
    for route in routes {
        let path = format!("/{}", route.example().join("/"));
        assert!(
            accepted(&route.method, &path),
            "{}: the router has no {} {path}",
            route.place,
            route.method
        );
    }
    for path in paths(root, routes, source) {
        for method in [Method::GET, Method::POST].iter().filter(|m| accepted(m, &path)) {
            let listed = routes.iter().any(|route| route.matches(method, &path));
            assert!(listed, "{place} has no row for {method} {path}");
        }
    }
}
