//! Bytes that own the reservation that pays for them.

use super::Reservation;
use bytes::Bytes;

struct Reserved<T> {
    data: T,
    _reservation: Reservation,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Reserved<T> {
    fn as_ref(&self) -> &[u8] {
        self.data.as_ref()
    }
}

/// `data` as reference-counted bytes, without a copy. The reservation is given back with the last reference.
pub fn charged(data: impl Into<Bytes>, reservation: Reservation) -> Bytes {
    let data = data.into();
    if reservation.bytes() == 0 {
        return data;
    }
    Bytes::from_owner(Reserved { data, _reservation: reservation })
}
