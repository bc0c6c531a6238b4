//! HTTP/2 frames: those we write, and a splitter for those we read.

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

pub const HEAD: usize = 9;
/// The largest window.
pub const WIDE: u32 = 0x7fff_ffff;
pub const DEFAULT_WINDOW: i64 = 65_535;
pub const DEFAULT_FRAME: usize = 16_384;
/// Frames that are not DATA may be this long; ours are small.
const MAX_CONTROL: usize = 1 << 20;

/// Begins a connection: no header table, no push, windows that never close.
pub fn connection_preface() -> Vec<u8> {
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let mut settings = Vec::new();
    for (identifier, value) in [(1_u16, 0_u32), (2, 0), (4, WIDE), (5, 1 << 20)] {
        settings.extend_from_slice(&identifier.to_be_bytes());
        settings.extend_from_slice(&value.to_be_bytes());
    }
    put_frame(&mut out, SETTINGS, 0, 0, &settings);
    let more = WIDE - DEFAULT_WINDOW as u32;
    put_frame(&mut out, WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
    out
}

pub fn put_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    put_frame_head(out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
}

pub fn put_frame_head(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let length = (length as u32).to_be_bytes();
    let stream = stream.to_be_bytes();
    out.extend_from_slice(&[length[1], length[2], length[3], kind, flags]);
    out.extend_from_slice(&stream);
}

/// A 32-bit number in the payload of a frame.
///
/// # Errors
/// The payload is too short.
pub fn read_number(payload: &[u8], at: usize) -> Result<u32, &'static str> {
    let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_be_bytes).ok_or("a frame that is too short")
}

/// Something that arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum FrameEvent<'b> {
    /// Part of a DATA frame; `whole` is set on its last part, with the frame's length.
    Data {
        stream: u32,
        bytes: &'b [u8],
        end: bool,
        whole: Option<usize>,
    },
    /// A complete header block.
    Headers {
        stream: u32,
        block: &'b [u8],
        end: bool,
    },
    Other {
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &'b [u8],
    },
}

/// Splits what arrives into events. DATA is passed on as it comes; other frames are collected.
#[derive(Debug, Default)]
pub struct FrameSplitter {
    /// A frame of which a part has arrived, from its head on.
    partial: Vec<u8>,
    /// A DATA frame that has not arrived whole: stream, flags, length, bytes left.
    data: Option<(u32, u8, usize, usize)>,
    /// A header block that continues: stream, flags, bytes.
    block: Option<(u32, u8, Vec<u8>)>,
}

impl FrameSplitter {
    /// Calls `each` for each event.
    ///
    /// # Errors
    /// The bytes are not HTTP/2, or `each` failed.
    pub fn read(
        &mut self,
        mut bytes: &[u8],
        each: &mut impl FnMut(FrameEvent<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        while !bytes.is_empty() {
            if let Some((stream, flags, length, left)) = self.data {
                let (now, rest) = bytes.split_at(left.min(bytes.len()));
                let left = left - now.len();
                self.data = (left > 0).then_some((stream, flags, length, left));
                bytes = rest;
                each(read_part(stream, flags, now, length, left))?;
                continue;
            }
            if self.partial.is_empty()
                && let Some(frame) = is_whole(bytes)?
            {
                bytes = &bytes[frame.len()..];
                self.frame(frame, each)?;
                continue;
            }
            // DATA is not collected.
            if self.partial.is_empty()
                && bytes.len() >= HEAD
                && bytes[3] == DATA
                && bytes[4] & PADDED == 0
            {
                let (length, stream) = (length(bytes), stream(bytes));
                self.data = Some((stream, bytes[4], length, length));
                bytes = &bytes[HEAD..];
                continue;
            }
            let needed = match self.partial.len() {
                short if short < HEAD => HEAD - short,
                long => HEAD + length(&self.partial) - long,
            };
            let (now, rest) = bytes.split_at(needed.min(bytes.len()));
            self.partial.extend_from_slice(now);
            bytes = rest;
            if self.partial.len() == HEAD
                && self.partial[3] == DATA
                && self.partial[4] & PADDED == 0
            {
                let (length, stream) = (length(&self.partial), stream(&self.partial));
                let flags = self.partial[4];
                self.partial.clear();
                if length > 0 {
                    self.data = Some((stream, flags, length, length));
                } else {
                    each(read_part(stream, flags, &[], 0, 0))?;
                }
            } else if let Some(_frame) = is_whole(&self.partial)? {
                let frame = std::mem::take(&mut self.partial);
                self.frame(&frame, each)?;
                self.partial = frame;
                self.partial.clear();
            }
        }
        Ok(())
    }

    fn frame(
        &mut self,
        frame: &[u8],
        each: &mut impl FnMut(FrameEvent<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let (kind, flags, stream) = (frame[3], frame[4], stream(frame));
        let payload = &frame[HEAD..];
        if let Some((of, _, _)) = &self.block
            && (kind != CONTINUATION || *of != stream)
        {
            return Err("the server interrupted a header block".to_owned());
        }
        match kind {
            DATA => {
                let bytes = strip_padding(payload, flags)?;
                each(read_part(stream, flags, bytes, payload.len(), 0))
            }
            HEADERS => {
                let mut block = strip_padding(payload, flags)?;
                if flags & PRIORITY != 0 {
                    block = block.get(5..).ok_or("a HEADERS frame that is too short")?;
                }
                if flags & END_HEADERS == 0 {
                    self.block = Some((stream, flags, block.to_vec()));
                    return Ok(());
                }
                each(FrameEvent::Headers { stream, block, end: flags & END_STREAM != 0 })
            }
            CONTINUATION => {
                let Some((_, first, block)) = &mut self.block else {
                    return Err("the server continued no header block".to_owned());
                };
                block.extend_from_slice(payload);
                if block.len() > MAX_CONTROL {
                    return Err("the server sent endless headers".to_owned());
                }
                let end = *first & END_STREAM != 0;
                if flags & END_HEADERS != 0
                    && let Some((_, _, block)) = self.block.take()
                {
                    return each(FrameEvent::Headers { stream, block: &block, end });
                }
                Ok(())
            }
            kind => each(FrameEvent::Other { kind, flags, stream, payload }),
        }
    }
}

fn read_part(stream: u32, flags: u8, bytes: &[u8], length: usize, left: usize) -> FrameEvent<'_> {
    let last = left == 0;
    FrameEvent::Data {
        stream,
        bytes,
        end: last && flags & END_STREAM != 0,
        whole: last.then_some(length),
    }
}

/// The frame at the start of `bytes`, if it has arrived whole.
fn is_whole(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    if bytes.len() < HEAD {
        return Ok(None);
    }
    let (length, kind) = (length(bytes), bytes[3]);
    if kind != DATA && length > MAX_CONTROL {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        return Err(format!("not an HTTP/2 frame: {text:?}"));
    }
    Ok(bytes.get(..HEAD + length))
}

fn length(head: &[u8]) -> usize {
    u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize
}

fn stream(head: &[u8]) -> u32 {
    u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]])
}

fn strip_padding(payload: &[u8], flags: u8) -> Result<&[u8], String> {
    if flags & PADDED == 0 {
        return Ok(payload);
    }
    let padding = payload.first().map_or(usize::MAX, |padding| usize::from(*padding));
    payload
        .get(1..payload.len().saturating_sub(padding))
        .ok_or_else(|| "a frame with more padding than bytes".to_owned())
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
