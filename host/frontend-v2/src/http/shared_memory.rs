//! The parameters of a tensor that lies in client shared memory (docs/protocol/v2.md §2.5).

use super::json::access::{expect_member, expect_text, expect_unsigned};
use super::json::{JsonValue, Object};
use trtserver_base::error::Result;
use trtserver_wire::shared_memory::RegionSlice;

pub const REGION: &str = "shared_memory_region";
const OFFSET: &str = "shared_memory_offset";
const BYTE_SIZE: &str = "shared_memory_byte_size";

/// The shared memory that `parameters` name, whose member [`REGION`] is `region`.
///
/// # Errors
/// A parameter has a wrong type, or the size is missing.
pub fn parse_region_slice(parameters: Object<'_>, region: &JsonValue<'_>) -> Result<RegionSlice> {
    let region = expect_text(REGION, region)?.into_owned();
    let [offset, byte_size] = parameters.pick([OFFSET, BYTE_SIZE])?;
    let offset = offset.map_or(Ok(0), |offset| expect_unsigned(OFFSET, &offset))?;
    let byte_size = expect_unsigned(BYTE_SIZE, expect_member(&byte_size, BYTE_SIZE)?)?;
    Ok(RegionSlice { region, offset, byte_size })
}
