//! A short soak: all batchers and endpoints at once, with cancellations.

use trtserver_tests::soak;

#[test]
fn all_responses_are_correct() {
    let server = soak::server().start();
    let report = soak::run(&server, 20_000, |_, _| {});
    assert_eq!(report.wrong, 0, "{:#?}", report.examples);
    assert!(report.right + report.cancelled >= 20_000, "{report:?}");
    assert!(report.cancelled > 0);
    assert!(server.stop().success());
}
