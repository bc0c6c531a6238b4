//! Frames of a server that are neither headers nor data: settings, windows, resets, the end of the
//! connection.

use super::super::thread::FinishedRequest;
use super::GrpcContext;
use super::connection::GrpcConnection;
use trtserver_client::http2::frames;

impl GrpcConnection {
    pub(super) fn control(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
        context: &GrpcContext<'_>,
        done: &mut Vec<FinishedRequest>,
    ) -> Result<(), String> {
        let number = |at| frames::read_number(payload, at);
        match kind {
            frames::SETTINGS if flags & frames::ACK == 0 => {
                let mut table = None;
                for setting in payload.chunks_exact(6) {
                    let value =
                        u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
                    match u16::from_be_bytes([setting[0], setting[1]]) {
                        1 => table = Some(value),
                        3 => self.max_calls = (value as usize).max(1),
                        4 => {
                            let more = i64::from(value) - self.initial_window;
                            self.initial_window = i64::from(value);
                            self.calls.iter_mut().for_each(|call| call.window += more);
                        }
                        5 => self.max_frame = (value as usize).clamp(1, 1 << 20),
                        _ => {}
                    }
                }
                self.table.settings(table);
                frames::put_frame(&mut self.out, frames::SETTINGS, frames::ACK, 0, &[]);
            }
            frames::PING if flags & frames::ACK == 0 => {
                frames::put_frame(&mut self.out, frames::PING, frames::ACK, 0, payload);
            }
            frames::WINDOW_UPDATE => {
                let more = i64::from(number(0)? & 0x7fff_ffff);
                if stream == 0 {
                    self.window += more;
                } else if let Some(call) = self.calls.iter_mut().find(|call| call.id == stream) {
                    call.window += more;
                }
            }
            frames::RST_STREAM => {
                let code = number(0)?;
                if let Some(at) = self.calls.iter().position(|call| call.id == stream) {
                    let failure = &mut self.calls[at].failure;
                    failure.get_or_insert(format!("the server reset the call (error code {code})"));
                    self.ended(at, context, done);
                }
            }
            frames::GOAWAY => {
                self.ending = true;
                let (last, code) = (number(0)? & 0x7fff_ffff, number(4)?);
                let reason = String::from_utf8_lossy(&payload[8..]).into_owned();
                while let Some(at) = self.calls.iter().position(|call| call.id > last) {
                    let text = format!("the server ends the connection (code {code}) {reason}");
                    self.calls[at].failure.get_or_insert(text.trim_end().to_owned());
                    self.ended(at, context, done);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
