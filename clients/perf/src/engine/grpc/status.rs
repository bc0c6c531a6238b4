//! The status of a gRPC call, from the header blocks of its response.

use trtserver_client::http2::headers::HeaderBlock;

/// What a header block says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderInfo {
    pub http_status: Option<u16>,
    pub grpc_status: Option<u32>,
    pub message: String,
}

impl HeaderBlock for HeaderInfo {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        let text = String::from_utf8_lossy(value);
        match name {
            b":status" => self.http_status = text.parse().ok(),
            b"grpc-status" => self.grpc_status = Some(text.parse().unwrap_or(u32::MAX)),
            b"grpc-message" => self.message = percent_decoded(value),
            _ => {}
        }
    }
}

fn percent_decoded(value: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        let code = value.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(code) if byte == b'%' => {
                bytes.push(code);
                at += 3;
            }
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
