//! Bytes that own the reservation that pays for them.

use super::Reservation;
use crate::reclaim;
use bytes::Bytes;

struct Reserved {
    data: Bytes,
    reservation: Reservation,
}

impl AsRef<[u8]> for Reserved {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.data.len() >= reclaim::MIN_SIZE {
            let reservation = self.reservation.split(usize::MAX);
            reclaim::later((std::mem::take(&mut self.data), reservation));
        }
    }
}

/// `data` as reference-counted bytes, without a copy. The reservation is given back with the last reference.
pub fn charged(data: impl Into<Bytes>, reservation: Reservation) -> Bytes {
    let data = data.into();
    if reservation.bytes() == 0 {
        return data;
    }
    Bytes::from_owner(Reserved { data, reservation })
}
