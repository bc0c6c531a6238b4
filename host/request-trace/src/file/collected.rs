//! The traces of one setting that are not in a file yet.

use super::format::write_records;
use super::writer::{FileText, TraceFile, TraceText};
use crate::request_trace::RequestTrace;
use crate::settings::TraceValues;

/// Text that is written early, whatever the log frequency.
const MAX_COLLECTED: usize = 32 << 20;

/// Traces that wait for the file that they belong to.
#[derive(Debug, Default)]
pub struct Collected {
    text: String,
    /// Traces in `text`.
    waiting: u64,
    /// Traces since the setting exists.
    total: u64,
}

impl Collected {
    /// Adds a trace. Without a log frequency and a count it goes to the file at once; else to the
    /// next numbered one, when the frequency is reached, or all traces of an exhausted count have
    /// come. `counts`: whether the count is used up, and how many traces were sampled.
    pub fn add(
        &mut self,
        file: &TraceFile,
        trace: &RequestTrace,
        values: &TraceValues,
        (exhausted, created): (&dyn Fn() -> bool, &dyn Fn() -> u64),
    ) {
        if self.waiting > 0 {
            self.text.push(',');
        }
        write_records(trace, values.levels, &mut self.text);
        self.waiting += 1;
        self.total += 1;
        let frequency = u64::from(values.log_frequency);
        if frequency == 0 && values.count < 0 {
            file.write(FileText::Append(self.take_records()));
        } else if (frequency != 0 && self.waiting >= frequency)
            || (exhausted() && self.total == created())
            || self.text.len() > MAX_COLLECTED
        {
            file.write(FileText::Numbered(self.take_records()));
        }
    }

    /// The setting ends: what is left is written.
    pub fn end(&mut self, file: &TraceFile, values: &TraceValues) {
        if self.waiting == 0 {
            return;
        }
        let records = self.take_records();
        file.write(match values.log_frequency {
            0 => FileText::Append(records),
            _ => FileText::Numbered(records),
        });
    }

    fn take_records(&mut self) -> TraceText {
        let traces = std::mem::take(&mut self.waiting);
        TraceText { text: std::mem::take(&mut self.text), traces }
    }
}
