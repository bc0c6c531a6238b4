//! Data of one warm-up tensor: zeros, random values, or a file in the model's `warmup` directory.

use super::super::load_limits::LoadMemory;
use bytes::Bytes;
use trtserver_base::ledger::MemoryTag;
use trtserver_model_config::ConfigError;
use trtserver_model_files::FilePlaces;
use trtserver_model_files::stays_inside;
use trtserver_proto::v2::model_warmup::input::InputDataType;
use trtserver_request::buffer::AlignedBuf;
use trtserver_request::strings;
use trtserver_request::strings::StringFault;
use trtserver_request::tensor::element_count;
use trtserver_request::{DType, ShapeText};

/// Directory of the files, in the model's directory.
const WARMUP_DIR: &str = "warmup";
/// Memory of one request of a sample beside its tensors, estimated generously.
const REQUEST_BYTES: u64 = 2048;

/// Produces data. Random values are the same at every load, so that failures are reproducible.
pub struct WarmupSource<'a> {
    places: &'a FilePlaces,
    memory: &'a mut LoadMemory,
    random: u64,
    /// What the latest file has beyond its tensor, as the end of a sentence.
    surplus: Option<String>,
    /// What the data is entered under in the ledger.
    tag: MemoryTag,
}

impl<'a> WarmupSource<'a> {
    /// `memory` limits the bytes that are produced; they are entered under `tag`.
    pub fn new(places: &'a FilePlaces, memory: &'a mut LoadMemory, tag: MemoryTag) -> Self {
        Self { places, memory, random: 0, surplus: None, tag }
    }

    /// Takes memory for `count` requests of a sample.
    pub fn requests(&mut self, count: u32) -> Result<(), ConfigError> {
        let bytes = u64::from(count) * REQUEST_BYTES;
        self.memory.take(bytes, || format!("a warmup batch of {count} requests"))
    }

    pub fn bytes(
        &mut self,
        dtype: DType,
        shape: &[i64],
        kind: Option<&InputDataType>,
    ) -> Result<Bytes, ConfigError> {
        match kind {
            Some(InputDataType::InputDataFile(file)) => self.file(dtype, shape, file),
            Some(InputDataType::RandomData(_)) if dtype != DType::String => {
                let mut data = self.zeroed(dtype, shape)?;
                self.fill(data.as_mut(), dtype);
                Ok(data.into_bytes())
            }
            // Random strings are empty, like zero strings.
            _ => self.zeros(dtype, shape),
        }
    }

    /// What the latest file had beyond its tensor, if that was not reported yet.
    pub fn take_surplus(&mut self) -> Option<String> {
        self.surplus.take()
    }

    pub fn zeros(&mut self, dtype: DType, shape: &[i64]) -> Result<Bytes, ConfigError> {
        Ok(self.zeroed(dtype, shape)?.into_bytes())
    }

    /// A zero string is empty: the four bytes of its length.
    fn zeroed(&mut self, dtype: DType, shape: &[i64]) -> Result<AlignedBuf, ConfigError> {
        let bytes = element_count(shape).and_then(|n| n.checked_mul(dtype.size().unwrap_or(4)));
        let bytes = bytes.ok_or_else(|| too_large(shape))?;
        self.memory.take(bytes as u64, || format!("warmup data of shape {}", ShapeText(shape)))?;
        AlignedBuf::try_new(bytes, self.tag).ok_or_else(|| too_large(shape))
    }

    fn fill(&mut self, data: &mut [u8], dtype: DType) {
        let mask = value_mask(dtype);
        for chunk in data.chunks_mut(8) {
            let value = (self.next() & mask).to_le_bytes();
            chunk.copy_from_slice(&value[..chunk.len()]);
        }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn file(&mut self, dtype: DType, shape: &[i64], file: &str) -> Result<Bytes, ConfigError> {
        if file.is_empty() || !stays_inside(file) {
            return Err(ConfigError::invalid(format!(
                "warmup data file '{file}' leaves the model's '{WARMUP_DIR}' directory"
            )));
        }
        let dir = self.places.model_dir().join(WARMUP_DIR);
        let path = self
            .places
            .resolve(&dir, file)
            .map_err(|refusal| ConfigError::invalid(format!("warmup data file: {refusal}")))?;
        let data = self.memory.read(&path, "warmup data file").map_err(|e| {
            let unreadable = format!("unable to read warmup data file '{}'", path.display());
            e.into_config_error(|e| format!("{unreadable}: {e}"))
        })?;
        let found = data.len();
        let elements = element_count(shape);
        match dtype.size() {
            None => {
                let elements = elements.ok_or_else(|| too_large(shape))?;
                check_string_data(&data, elements).map_err(|why| {
                    let expects = format!("warmup setting expects {elements} strings");
                    ConfigError::invalid(format!(
                        "{expects}, but the data provided from {file} {why}"
                    ))
                })?;
            }
            Some(size) => {
                let bytes = elements.and_then(|n| n.checked_mul(size));
                let expects = bytes.ok_or_else(|| too_large(shape))?;
                let Some(used) = data.get(..expects) else {
                    // Text of Triton, including the missing space.
                    return Err(ConfigError::invalid(format!(
                        "warmup setting expects {expects} bytes, but the data provided from {file}only has {found} \
                         bytes"
                    )));
                };
                self.surplus = (found > expects).then(|| {
                    format!("'{file}' has {found} bytes, of which the first {expects} are used")
                });
                return Ok(AlignedBuf::copy_parts(&[used], self.tag).into_bytes());
            }
        }
        Ok(data.into())
    }
}

/// Checks a file of strings; the error ends a sentence.
fn check_string_data(data: &[u8], elements: usize) -> Result<(), String> {
    match strings::check_strings(data, elements) {
        Ok(end) if end == data.len() => Ok(()),
        Ok(end) => Err(format!("has {} bytes behind them", data.len() - end)),
        Err(StringFault::TooFew { found }) => Err(format!("has {found}")),
        Err(StringFault::TooMany { .. }) => Err("has more".to_owned()),
        Err(StringFault::NoLength { available }) => {
            Err(format!("ends with {available} of the 4 bytes of a length"))
        }
        Err(StringFault::Short { length, available }) => {
            Err(format!("ends with {available} of the {length} bytes of a string"))
        }
    }
}

fn too_large(shape: &[i64]) -> ConfigError {
    let shape = ShapeText(shape);
    ConfigError::invalid(format!("warmup data of shape {shape} does not fit into memory"))
}

/// The bits of eight bytes of elements that are random. Booleans are 0 or 1. Floating-point values
/// are between 0 and 1: their sign and the highest and lowest exponent bits stay 0.
fn value_mask(dtype: DType) -> u64 {
    match dtype {
        DType::Bool => 0x0101_0101_0101_0101,
        DType::Fp16 => 0x3bff_3bff_3bff_3bff,
        DType::Bf16 => 0x3f7f_3f7f_3f7f_3f7f,
        DType::Fp32 => 0x3f7f_ffff_3f7f_ffff,
        DType::Fp64 => 0x3fef_ffff_ffff_ffff,
        _ => u64::MAX,
    }
}
