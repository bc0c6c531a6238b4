//! Tables as text and CSV.

use crate::Result;

pub struct Table {
    columns: Vec<&'static str>,
    /// Number of leading text columns; the others are numbers.
    text_columns: usize,
    rows: Vec<Vec<String>>,
    remarks: Vec<String>,
    failed: usize,
}

impl Table {
    /// A row with one text column.
    pub fn new(columns: &[&'static str]) -> Self {
        Self::with_text_columns(columns, 1)
    }

    /// A row whose first `text_columns` columns are text.
    pub fn with_text_columns(columns: &[&'static str], text_columns: usize) -> Self {
        let columns = columns.to_vec();
        Table { columns, text_columns, rows: Vec::new(), remarks: Vec::new(), failed: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// A row of `cells` after its name, or why it could not be measured.
    pub fn measured(&mut self, name: String, cells: Result<Vec<String>>) {
        match cells {
            Ok(cells) => self.rows.push([vec![name], cells].concat()),
            Err(problem) => self.failure(&name, &problem),
        }
    }

    /// A row that could not be measured.
    pub fn failure(&mut self, name: &str, problem: &str) {
        self.failed_row(vec![name.to_owned()], name, problem);
    }

    /// The same for several text columns.
    pub fn failed_row(&mut self, mut cells: Vec<String>, name: &str, problem: &str) {
        self.failed += 1;
        self.remarks.push(format!("{name}: {problem}"));
        cells.push("failed".to_owned());
        self.rows.push(cells);
    }

    /// A sentence below the table.
    pub fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }

    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    pub fn outcome(&self) -> Result<()> {
        match self.failed {
            0 => Ok(()),
            n => Err(format!("{n} rows could not be measured")),
        }
    }

    /// Text is left-aligned, numbers right-aligned.
    pub fn aligned(&self) -> String {
        let heads = self.columns.iter().map(|c| (*c).to_owned()).collect();
        let all = || std::iter::once(&heads).chain(&self.rows);
        let cell = |row: &Vec<String>, i: usize| row.get(i).cloned().unwrap_or_default();
        let width = |i| all().map(|row| cell(row, i).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for row in all() {
            let mut line = String::new();
            for (i, &width) in widths.iter().enumerate() {
                let cell = cell(row, i);
                let gap = if i == 0 { "" } else { "  " };
                line += &match i < self.text_columns {
                    true => format!("{gap}{cell:<width$}"),
                    false => format!("{gap}{cell:>width$}"),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    pub fn csv(&self) -> String {
        let mut text = self.columns.join(",") + "\n";
        for row in &self.rows {
            text += &row.join(",");
            text.push('\n');
        }
        text
    }
}

/// The median; of an even number of values the lower middle one.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

/// Range of the values relative to the median.
pub fn spread(values: &[f64]) -> f64 {
    let high = values.iter().copied().fold(f64::MIN, f64::max);
    let low = values.iter().copied().fold(f64::MAX, f64::min);
    let middle = median(values);
    if middle > 0.0 { (high - low) / middle } else { 0.0 }
}

/// With this many decimals; `-` for NaN.
pub fn number(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
}

pub fn verdict(met: bool) -> &'static str {
    if met { "PASS" } else { "MISS" }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
