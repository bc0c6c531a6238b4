//! What is found again, and what is not.

use super::*;

#[test]
fn texts_are_found_by_all_of_their_bytes() {
    let mut texts = RepeatedTexts::default();
    let long = "x".repeat(MAX_TEXT);
    for (number, text) in ["", "a", "12345678", "123456789", &long].into_iter().enumerate() {
        assert_eq!(texts.get(text.as_bytes()), None);
        texts.keep(text.as_bytes(), number);
        assert_eq!(texts.get(text.as_bytes()), Some(&number));
        assert_eq!(texts.get(format!("{text} ").as_bytes()), None);
    }
    texts.keep(b"a", 9);
    assert_eq!(texts.get(b"a"), Some(&9));
}

#[test]
fn long_texts_and_more_than_there_are_places_for_are_dropped() {
    let mut texts = RepeatedTexts::default();
    let long = "x".repeat(MAX_TEXT + 1);
    texts.keep(long.as_bytes(), 0);
    assert_eq!(texts.get(long.as_bytes()), None);
    let all: Vec<String> = (0..1000).map(|n| format!("text {n}")).collect();
    all.iter().enumerate().for_each(|(n, text)| texts.keep(text.as_bytes(), n));
    let found = all.iter().filter(|text| texts.get(text.as_bytes()).is_some()).count();
    assert!((1..=PLACES).contains(&found), "{found}");
    // Similar texts are spread over the places.
    assert!(found > PLACES / 2, "{found}");
}
