//! Reads `config.pbtxt`. Errors begin with file, line and column.

use std::io::ErrorKind;
use std::path::Path;

use trtserver_proto::v2::ModelConfig;

use trtserver_proto::text::{TextError, TextPlaces, parse_with_places};

use super::comment_bytes::readable_comments;
use super::{ConfigError, ConfigPart};
use trtserver_base::regular_file;

/// Name of the configuration in a model's directory.
pub const FILE_NAME: &str = "config.pbtxt";

/// Far above the size of any real configuration, in a file or in a load request. A parsed
/// configuration takes up to a hundred times the memory of its text.
pub const MAX_BYTES: u64 = 4 << 20;

/// The configuration in `path`, or `None` where there is no such file.
pub fn read_model_config(path: &Path) -> Result<Option<ModelConfig>, ConfigError> {
    let read = read_config_text(path)?;
    read.map(|text| {
        trtserver_proto::text::parse(strip_bom(&text)).map_err(|e| text_error(path, &e))
    })
    .transpose()
}

/// As [`read_model_config`], with the text of the file.
pub fn read_with_text(path: &Path) -> Result<Option<(ModelConfig, String)>, ConfigError> {
    let Some(text) = read_config_text(path)? else { return Ok(None) };
    let config =
        trtserver_proto::text::parse(strip_bom(&text)).map_err(|e| text_error(path, &e))?;
    Ok(Some((config, text)))
}

/// As [`read_model_config`], with the places of the fields in the file.
pub fn read_with_places(path: &Path) -> Result<Option<(ModelConfig, TextPlaces)>, ConfigError> {
    let read = read_config_text(path)?;
    read.map(|text| parse_with_places(strip_bom(&text)).map_err(|e| text_error(path, &e)))
        .transpose()
}

fn read_config_text(path: &Path) -> Result<Option<String>, ConfigError> {
    let file = path.display();
    let unreadable = |e: std::io::Error| ConfigError::unreadable(format!("{file}: {e}"));
    let bytes = match regular_file::read_regular_file(path, MAX_BYTES) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unreadable(e)),
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            let message =
                format!("{file}: larger than {MAX_BYTES} bytes, not a model configuration");
            return Err(ConfigError::unreadable(message));
        }
    };
    let text =
        String::from_utf8(bytes).or_else(|e| String::from_utf8(readable_comments(e.as_bytes())));
    text.map(Some).map_err(|e| {
        let valid = e.utf8_error().valid_up_to();
        let (line, column) = line_and_column(&e.as_bytes()[..valid]);
        let message = "not UTF-8 text, which only comments need not be".to_owned();
        text_error(path, &TextError { line, column, message })
    })
}

/// Some editors write a byte order mark, which has no meaning in UTF-8.
fn strip_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn text_error(path: &Path, e: &TextError) -> ConfigError {
    let error = ConfigError::unreadable(format!("{}:{e}", path.display()));
    error.about(ConfigPart::Position(e.line, e.column))
}

/// Line and column, both from 1, of the byte after `before`.
fn line_and_column(before: &[u8]) -> (usize, usize) {
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    (line, before.len() - start + 1)
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
