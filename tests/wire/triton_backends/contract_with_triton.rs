//! The checks of tests/triton/contract.c hold in Triton itself, so that what they expect of our host is what Triton does.

use trtserver_tests::triton::Triton;
use trtserver_tests::triton_backends::{
    CONTRACT_FLAGS, SONAME_IN_WHEEL, contract, contract_models,
};
use trtserver_tests::{Repository, python_v2_with_triton};

#[test]
fn contract_holds_in_triton() {
    let models = Repository::new();
    for (name, config) in contract_models() {
        models.model(name, &config);
    }
    let triton = Triton::start(models.path(), contract(SONAME_IN_WHEEL), &CONTRACT_FLAGS);
    python_v2_with_triton(&triton, "triton_contract.py", &[]);
}
