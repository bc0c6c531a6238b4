//! Bytes that own the reservation that pays for them.

use super::Reservation;
use bytes::Bytes;

struct Reserved {
    data: Vec<u8>,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Reserved {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// `data` as reference-counted bytes, without a copy. The reservation is given back with the last reference.
pub fn into_bytes(data: Vec<u8>, reservation: Reservation) -> Bytes {
    if reservation.bytes() == 0 {
        return Bytes::from(data);
    }
    Bytes::from_owner(Reserved { data, _reservation: reservation })
}
