//! Class labels of an output: one text with the end of each line, because a list of strings takes
//! 24 bytes a line more.

/// The class labels of one output, by class number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassLabels {
    text: String,
    /// Offset behind each label, before its line end.
    ends: Vec<u32>,
}

/// Lines of a label file: a last line without LF counts.
pub fn count_lines(text: &[u8]) -> usize {
    let ends = text.iter().filter(|&&byte| byte == b'\n').count();
    ends + usize::from(text.last().is_some_and(|&byte| byte != b'\n'))
}

impl ClassLabels {
    /// One label a line. Empty lines count, and the last line need not end with LF. A CR before the
    /// LF is dropped, as in TRTIS 0.12; later releases kept it. `None` for a text of 4 GiB or more.
    pub fn from_lines(text: String) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        if text.is_empty() {
            return Some(Self::default());
        }
        let mut ends = Vec::new();
        ends.try_reserve_exact(count_lines(text.as_bytes())).ok()?;
        let lines = text.strip_suffix('\n').unwrap_or(&text);
        let line_ends = lines.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        ends.extend(line_ends.map(|(at, _)| at as u32).chain([lines.len() as u32]));
        Some(Self { text, ends })
    }

    /// The label of class `index`; `None` if there are fewer.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize + 1);
        let line = self.text.get(begin..end)?;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Memory of text and offsets.
    pub fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.ends)
    }
}

#[cfg(test)]
#[path = "class_labels_tests.rs"]
mod tests;
