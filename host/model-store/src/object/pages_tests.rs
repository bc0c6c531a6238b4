//! Unit tests of `pages.rs`.

use super::*;

fn s3_entry(key: &str) -> String {
    format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>")
}

fn azure_entry(key: &str) -> String {
    format!("<Blob><Name>{key}</Name><Properties><Etag>1</Etag></Properties></Blob>")
}

fn s3_page(entries: &str) -> String {
    format!("<?xml version='1.0'?><ListBucketResult>{entries}</ListBucketResult>")
}

fn azure_page(entries: &str) -> String {
    format!("<EnumerationResults><Blobs>{entries}</Blobs><NextMarker/></EnumerationResults>")
}

#[test]
fn entries_of_unusable_keys_are_cut_out() {
    for (entry, page) in
        [(s3_entry as fn(&str) -> String, s3_page as fn(&str) -> String), (azure_entry, azure_page)]
    {
        let long = "k".repeat(MAX_ENTRY);
        let usable = ["m/1/w", "m/", "a&amp;b/c", "m/ü"];
        let unusable = ["m//x", "/m/x", "r//x", "m/../x", "m/./x", &long];
        let all: String = usable.iter().zip(unusable).map(|(u, n)| entry(u) + &entry(n)).collect();
        let all = all + &entry(unusable[4]) + &entry(unusable[5]);
        let mut listing = ListingPages::default();
        let rest = String::from_utf8(listing.add(page(&all).as_bytes()).unwrap()).unwrap();
        let expected: String = usable.iter().map(|key| entry(key)).collect();
        assert_eq!(rest, page(&expected));
        let mut reported = unusable.map(str::to_owned);
        reported[5].truncate(MAX_REPORTED);
        assert_eq!(listing.unusable, reported);
    }
    let prefixes = "<CommonPrefixes><Prefix>r//</Prefix></CommonPrefixes>";
    let mut listing = ListingPages::default();
    assert_eq!(listing.add(s3_page(prefixes).as_bytes()).unwrap(), s3_page("").as_bytes());
    assert_eq!(listing.unusable, ["r//"]);
}

#[test]
fn repeated_token_and_bounds_are_errors() {
    let token =
        |token: &str| s3_page(&format!("<NextContinuationToken>{token}</NextContinuationToken>"));
    let marker = "<E><Blobs/><NextMarker>a</NextMarker></E>".to_owned();
    let many = s3_page(&s3_entry("m/k").repeat(MAX_KEYS / 3));
    let large = s3_page(&" ".repeat(MAX_PAGE - 100));
    for (pages, reason) in [
        (vec![token("a"), token("b"), token("a")], "repeats a continuation token"),
        (vec![marker.clone(), marker], "repeats a continuation token"),
        (vec![many.clone(), many.clone(), many.clone(), many], "more than 100000 keys"),
        (vec![large; 9], "more than 134217728 bytes"),
        (vec![s3_page(""); MAX_PAGES + 1], "more than 10000 pages"),
        (vec!["<ListBucketResult><Contents>".to_owned()], "not XML"),
    ] {
        let mut listing = ListingPages::default();
        let (last, others) = pages.split_last().unwrap();
        for page in others {
            listing.add(page.as_bytes()).unwrap();
        }
        let refused = listing.add(last.as_bytes()).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    let mut listing = ListingPages::default();
    listing.add(token("").as_bytes()).unwrap();
    listing.add(token("").as_bytes()).unwrap();
}
