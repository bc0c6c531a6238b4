//! Labels and messages of torch's library.

use super::*;

#[test]
fn the_label_names_the_release() {
    assert_eq!(version_label(0x0209_0100_0000_0000), "PyTorch 2.9.1");
    assert_eq!(version_label(0x020f_0000_0000_0000), "PyTorch 2.15.0");
}

#[test]
fn only_libraries_of_cuda_are_explained() {
    let other = "libgomp.so.1: cannot open shared object file: No such file or directory";
    assert_eq!(explain_dependency(other.to_owned()), other);
    let cuda = "libcudart.so.12: cannot open shared object file: No such file or directory";
    let text = explain_dependency(cuda.to_owned());
    assert!(text.starts_with(cuda) && text.contains("nvidia-cuda-runtime"), "{text}");
}
