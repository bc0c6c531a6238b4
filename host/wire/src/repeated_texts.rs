//! Texts that clients repeat, such as the head of all requests of a shape, each with what was read
//! of it. To compare a text costs a tenth of reading it.

/// Texts, each in the place that its hash names.
const PLACES: usize = 16;
/// Longest text that is kept.
const MAX_TEXT: usize = 1 << 10;

/// The repeated texts of a thread.
pub struct RepeatedTexts<T> {
    places: [Option<Box<RepeatedText<T>>>; PLACES],
}

struct RepeatedText<T> {
    text: Box<[u8]>,
    read: T,
}

impl<T> Default for RepeatedTexts<T> {
    fn default() -> Self {
        Self { places: [const { None }; PLACES] }
    }
}

impl<T> RepeatedTexts<T> {
    /// What was read of this text before.
    pub fn get(&self, text: &[u8]) -> Option<&T> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let repeated = self.places[place(text)].as_ref()?;
        (*repeated.text == *text).then_some(&repeated.read)
    }

    /// Keeps what was read of a text, in place of another one, unless it is long.
    pub fn keep(&mut self, text: &[u8], read: T) {
        if text.len() <= MAX_TEXT {
            self.places[place(text)] = Some(Box::new(RepeatedText { text: text.into(), read }));
        }
    }
}

/// The place of a text, by a hash of its bytes.
fn place(text: &[u8]) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut words = text.chunks_exact(8);
    let hash = (&mut words).fold(text.len() as u64, |hash, word| {
        mix(hash, word.try_into().map_or(0, u64::from_le_bytes))
    });
    let hash = words.remainder().iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
    (hash >> 32) as usize % PLACES
}

#[cfg(test)]
#[path = "repeated_texts_tests.rs"]
mod tests;
