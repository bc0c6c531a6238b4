//! TensorFlow models; need its library.

use super::serves_without_telemetry;
use trtserver_tests::tensorflow;

#[test]
fn every_release() {
    for release in ["2.21.0", "2.12.0"] {
        let library = format!("library={}", tensorflow(release).display());
        let flag = format!("--backend-config=tensorflow,{library}");
        serves_without_telemetry(
            "savedmodel/identity_fp32",
            "tensorflow",
            "/libtensorflow_cc.so",
            &[flag],
        );
    }
}
