//! The soak, for a short time: all schedulers and doors at once, with callers who go away.

use trtserver_tests::soak;

#[test]
fn twenty_thousand_requests() {
    let server = soak::server().start();
    let report = soak::run(&server, 20_000, |_, _| {});
    assert_eq!(report.wrong, 0, "{:#?}", report.examples);
    assert!(report.right + report.cancelled >= 20_000, "{report:?}");
    assert!(report.cancelled > 0);
    assert!(server.stop().success());
}
