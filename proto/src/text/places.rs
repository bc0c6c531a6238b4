//! Where the fields of a text are, for messages about a configuration that parses: line and column
//! by field path.

/// A value in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPlace {
    /// Names of the field and of the messages around it, joined by dots: `instance_group.count`.
    pub path: String,
    /// Counted from 1, columns in characters. Of an element of a list in brackets: where the
    /// element begins.
    pub line: usize,
    pub column: usize,
    /// The value of a string field.
    pub text: Option<String>,
    /// The message that contains the value, by its index.
    parent: Option<usize>,
}

/// The values of a text, in its order. A message comes before its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextPlaces(Vec<TextPlace>);

impl TextPlaces {
    /// All values, each with the index of the message that contains it.
    pub fn all(&self) -> impl Iterator<Item = (&TextPlace, Option<usize>)> {
        self.0.iter().map(|place| (place, place.parent))
    }

    /// The first value of the field `path`.
    pub fn find(&self, path: &str) -> Option<&TextPlace> {
        self.0.iter().find(|place| is_below(&place.path, path))
    }

    /// The place in the subtree of `path` that `named` describes best: the field whose name, or
    /// else the string whose value, is among `named`. The last of `named` that is found counts.
    /// Without one it is the first value of `path`; there is none if the subtree is the whole text
    /// (an empty `path`).
    pub fn nearest(&self, path: &str, named: &[&str]) -> Option<&TextPlace> {
        let within = || self.0.iter().filter(|p| is_below(&p.path, path));
        // The message that a string identifies, such as the `input` of a tensor name.
        let owner = named.iter().rev().find_map(|name| {
            // Messages name the whole, too, which says nothing about the place.
            let is_it = |p: &TextPlace| p.path != "name" && p.text.as_deref() == Some(*name);
            let place = within().find(|p| is_it(p))?;
            Some((place, place.parent))
        });
        let field = named.iter().rev().find_map(|name| {
            let is_it = |p: &TextPlace| p.path.rsplit('.').next() == Some(*name);
            let inside = |p: &TextPlace| owner.is_none_or(|(_, parent)| p.parent == parent);
            within().find(|place| is_it(place) && inside(place))
        });
        let whole = || self.find(path).filter(|_| !path.is_empty());
        field.or(owner.map(|(place, _)| place)).or_else(whole)
    }
}

fn is_below(path: &str, ancestor: &str) -> bool {
    let rest = path.strip_prefix(ancestor);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || ancestor.is_empty())
}

/// Collects places while a text is parsed.
#[derive(Default)]
pub(super) struct PlaceRecorder {
    values: Vec<RecordedValue>,
    /// Indices of the values that are being read, outermost first.
    open: Vec<usize>,
}

struct RecordedValue {
    name: &'static str,
    at: usize,
    text: Option<String>,
    parent: Option<usize>,
}

impl PlaceRecorder {
    /// A value of the field `name` begins at byte `at`.
    pub fn open(&mut self, name: &'static str, at: usize) {
        let parent = self.open.last().copied();
        self.open.push(self.values.len());
        self.values.push(RecordedValue { name, at, text: None, parent });
    }

    /// The value is a string.
    pub fn text(&mut self, text: &[u8]) {
        if let Some(value) = self.open.last().and_then(|index| self.values.get_mut(*index)) {
            value.text = Some(String::from_utf8_lossy(text).into_owned());
        }
    }

    /// The value ends.
    pub fn close(&mut self) {
        self.open.pop();
    }

    /// Makes lines and columns of byte positions, which ascend.
    pub fn finish(self, text: &str) -> TextPlaces {
        let mut places: Vec<TextPlace> = Vec::with_capacity(self.values.len());
        let (mut line, mut line_start, mut from) = (1, 0, 0);
        for value in self.values {
            let passed = text.get(from..value.at).unwrap_or_default();
            line += passed.bytes().filter(|byte| *byte == b'\n').count();
            if let Some(last) = passed.rfind('\n') {
                line_start = from + last + 1;
            }
            from = from.max(value.at);
            let column = 1 + text.get(line_start..value.at).unwrap_or_default().chars().count();
            let path = match value.parent.and_then(|parent| places.get(parent)) {
                Some(parent) => format!("{}.{}", parent.path, value.name),
                None => value.name.to_owned(),
            };
            places.push(TextPlace { path, line, column, text: value.text, parent: value.parent });
        }
        TextPlaces(places)
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
