//! Unit tests of `compression.rs`.

use super::*;
use std::io::Cursor;
use trtserver_base::ledger::LedgerHolder;

async fn round_trip(coding: Coding, data: &[u8], limit: usize) -> Result<Bytes, CodingError> {
    let packed = coding
        .compress(Cursor::new(data.to_vec()), data.len() as u64, MemoryTag::default())
        .await
        .unwrap();
    let len = packed.len();
    coding.decompress(Cursor::new(packed), len, limit, MemoryTag::default()).await
}

#[tokio::test]
async fn output_is_limited_exactly() {
    for coding in [Coding::Gzip, Coding::Deflate] {
        for len in [0, 1, MAX_INLINE - 1, MAX_INLINE, MAX_INLINE + 1, 1 << 20, 9 << 20] {
            let data: Vec<u8> = (0..len).map(|i| (i / 1000) as u8).collect();
            assert_eq!(round_trip(coding, &data, len).await.unwrap(), data, "{len}");
            if len > 0 {
                let got = round_trip(coding, &data, len - 1).await;
                assert!(matches!(got, Err(CodingError::TooLong)), "{len}");
            }
        }
    }
}

#[tokio::test]
async fn malformed_data_is_an_error() {
    let garbage = Cursor::new(b"no compressed data".to_vec());
    let got = Coding::Gzip.decompress(garbage, 18, 1000, MemoryTag::default()).await;
    assert!(matches!(got, Err(CodingError::Malformed(_))));
}

/// Pages, which the heap does not align to.
#[tokio::test]
async fn output_of_some_megabytes_is_not_in_the_heap() {
    for len in [MAX_HEAP + 1, 1 << 20, 9 << 20] {
        let got = round_trip(Coding::Gzip, &vec![7; len], len).await.unwrap();
        assert!(got.as_ptr().addr().is_multiple_of(4096), "{len}");
    }
}

#[test]
fn expansion_is_drawn_from_the_budget_before_it_is_produced() {
    let budget: &'static budget::MemoryBudget =
        Box::leak(Box::new(budget::MemoryBudget::new(1 << 20)));
    let mut output =
        CoderOutput::new(Box::new(io::repeat(1)), 1 << 30, LedgerHolder::Decode.into());
    output.reservation = budget.empty(LedgerHolder::Decode);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let got = runtime.block_on(output.read(true));
    assert!(matches!(got, Err(CodingError::Exhausted(_))));
    assert_eq!(budget.in_use(), 0);
    assert!(budget.peak() > 256 << 10, "{}", budget.peak());
}
