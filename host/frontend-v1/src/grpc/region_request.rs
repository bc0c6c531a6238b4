//! Reads `SharedMemoryControlRequest` as v1.5, v1.6, v1.7, and v1.8 and later encode it
//! (docs/protocol/v1.md §2.7).
//!
//! - v1.5 and v1.6: an enum at 1 and a region (name 1, key 2, offset 3, size 4) at 2. REGISTER is 1
//!   in v1.5 and 0, which is not sent, in v1.6. Both send a key only to register. UNREGISTER_ALL is
//!   2.
//! - v1.7 and later: `register` at 1, `unregister` at 2 (the name at 1), `unregister_all` at 3,
//!   `status` at 4.
//! - Within `register` v1.7 has the key at 2 of the identifier, and offset and size at 4 and 5;
//!   v1.8 has key and offset at 1 and 2 of the identifier, and the size at 4.

use crate::regions::RegionControl;
use trtserver_proto_wire::{Fields, WireValue};
use trtserver_wire::shared_memory::CudaMemory;

/// v1.6, in the enum at 1.
const UNREGISTER_ALL: u64 = 2;

/// The request in a message; `None` if it asks for nothing.
///
/// # Errors
/// The message is not in the wire format, or a text is not UTF-8.
pub fn read_region_request(message: &[u8]) -> Result<Option<RegionControl<'_>>, String> {
    let (mut number, mut call) = (0, None);
    for field in Fields::new(message) {
        let field = field.map_err(|e| e.to_string())?;
        match (field.number, field.value) {
            (1, WireValue::Varint(value)) => number = value,
            (1, WireValue::Bytes(register)) => call = Some(read_register(register)?),
            (2, WireValue::Bytes(region)) => call = Some(read_region(region)?),
            (3, WireValue::Bytes(_)) => call = Some(RegionControl::UnregisterAll),
            (4, WireValue::Bytes(_)) => call = Some(RegionControl::Status),
            _ => {}
        }
    }
    Ok(if number == UNREGISTER_ALL { Some(RegionControl::UnregisterAll) } else { call })
}

/// The region of v1.5 and v1.6, or `unregister`.
fn read_region(message: &[u8]) -> Result<RegionControl<'_>, String> {
    let m = read_message(message)?;
    let name = text(m.bytes[1])?;
    match m.bytes[2] {
        Some(key) => Ok(RegionControl::Register {
            name,
            key: text(Some(key))?,
            offset: m.number(3),
            byte_size: m.number(4),
        }),
        None => Ok(RegionControl::Unregister { name }),
    }
}

fn read_register(message: &[u8]) -> Result<RegionControl<'_>, String> {
    let m = read_message(message)?;
    let name = text(m.bytes[1])?;
    if let Some(cuda) = m.bytes[3] {
        // v1.7 has a key in place of the handle, which has another size than a handle.
        let cuda = read_message(cuda)?;
        let handle = cuda.bytes[1].unwrap_or_default();
        let memory = CudaMemory { handle, device_id: cuda.number(2), byte_size: m.number(4) };
        return Ok(RegionControl::RegisterCuda { name, memory });
    }
    let Some(identifier) = m.bytes[2] else {
        return Ok(RegionControl::RegisterNothing { name });
    };
    let identifier = read_message(identifier)?;
    Ok(match (identifier.bytes[2], m.numbers[5]) {
        (None, None) => RegionControl::Register {
            name,
            key: text(identifier.bytes[1])?,
            offset: identifier.number(2),
            byte_size: m.number(4),
        },
        (key, _) => RegionControl::Register {
            name,
            key: text(key)?,
            offset: m.number(4),
            byte_size: m.number(5),
        },
    })
}

/// The last value of each of the fields 1 to 5, by number.
#[derive(Default)]
struct RegionFields<'a> {
    bytes: [Option<&'a [u8]>; 6],
    numbers: [Option<u64>; 6],
}

impl RegionFields<'_> {
    fn number(&self, field: usize) -> u64 {
        self.numbers[field].unwrap_or(0)
    }
}

fn read_message(message: &[u8]) -> Result<RegionFields<'_>, String> {
    let mut read = RegionFields::default();
    for field in Fields::new(message) {
        let field = field.map_err(|e| e.to_string())?;
        let number = field.number as usize;
        match field.value {
            WireValue::Bytes(bytes) if number < 6 => read.bytes[number] = Some(bytes),
            WireValue::Varint(value) if number < 6 => read.numbers[number] = Some(value),
            _ => {}
        }
    }
    Ok(read)
}

fn text(bytes: Option<&[u8]>) -> Result<&str, String> {
    std::str::from_utf8(bytes.unwrap_or_default()).map_err(|_| "a text is not UTF-8".to_owned())
}

#[cfg(test)]
#[path = "region_request_tests.rs"]
mod tests;
