//! Unit tests of `places.rs`.

use super::super::parse_with_places;
use super::*;
use crate::v2::ModelConfig;

fn places(text: &str) -> TextPlaces {
    parse_with_places::<ModelConfig>(text).unwrap_or_else(|e| panic!("{e}")).1
}

const TEXT: &str = "\
name: 'm'
input [
  { name: 'a' dims: [ 1, -1 ] },
  { name: 'b', dims: [ 2, 0 ]
    reshape { shape: 3 } }
]
 optimization { cuda { graphs: true } }
";

#[test]
fn values_are_found_by_path() {
    let places = places(TEXT);
    let at = |path: &str| places.find(path).map(|p| (p.line, p.column));
    assert_eq!(at("name"), Some((1, 1)));
    assert_eq!(at("input"), Some((3, 3)));
    assert_eq!(at("input.dims"), Some((3, 23)));
    assert_eq!(at("input.reshape.shape"), Some((5, 15)));
    assert_eq!(at("optimization.cuda.graphs"), Some((7, 24)));
    assert_eq!(at("optimization.cuda"), Some((7, 17)));
    assert_eq!(at("output"), None);
    // `in` is not an ancestor of `input`.
    assert_eq!(at("in"), None);
}

#[test]
fn quoted_names_select_the_message_and_the_field() {
    let places = places(TEXT);
    let at = |path: &str, named: &[&str]| places.nearest(path, named).map(|p| (p.line, p.column));
    assert_eq!(at("input", &[]), Some((3, 3)));
    assert_eq!(at("input", &["b"]), Some((4, 5)));
    assert_eq!(at("input", &["b", "dims"]), Some((4, 24)));
    assert_eq!(at("input", &["b", "label_filename"]), Some((4, 5)));
    assert_eq!(at("input", &["reshape"]), Some((5, 5)));
    assert_eq!(at("output", &["b"]), None);
}

#[test]
fn places_do_not_change_what_is_read() {
    let (config, _) = parse_with_places::<ModelConfig>(TEXT).unwrap();
    assert_eq!(config, super::super::parse::<ModelConfig>(TEXT).unwrap());
    let error = parse_with_places::<ModelConfig>("name: 'm'\n naem: 1").unwrap_err();
    assert_eq!((error.line, error.column), (2, 2));
}
