//! Bytes that own the reservation that pays for them.

use super::MemoryReservation;
use crate::reclaim;
use bytes::Bytes;

struct ReservedBytes {
    data: Bytes,
    reservation: MemoryReservation,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        if self.data.len() >= reclaim::MIN_SIZE {
            let reservation = self.reservation.split(usize::MAX);
            reclaim::reclaim_later((std::mem::take(&mut self.data), reservation));
        }
    }
}

/// `data` as reference-counted bytes, without a copy. The reservation is given back with the last
/// reference.
pub fn charge_bytes(data: impl Into<Bytes>, reservation: MemoryReservation) -> Bytes {
    let data = data.into();
    if reservation.bytes() == 0 {
        return data;
    }
    Bytes::from_owner(ReservedBytes { data, reservation })
}
