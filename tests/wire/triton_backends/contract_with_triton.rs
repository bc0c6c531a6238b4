//! The checks of tests/triton/contract.c hold here, and in Triton itself: what they expect of our host is what Triton does.

use trtserver_tests::triton::Triton;
use trtserver_tests::triton_backends::{
    CONTRACT_FLAGS, SONAME, SONAME_IN_WHEEL, contract, contract_models,
};
use trtserver_tests::{Repository, Server, python_v2, python_v2_with_triton};

#[test]
fn contract_holds_in_triton() {
    let models = Repository::new();
    for (name, config) in contract_models() {
        models.model(name, &config);
    }
    let triton = Triton::start(models.path(), contract(SONAME_IN_WHEEL), &CONTRACT_FLAGS);
    python_v2_with_triton(&triton, "triton_contract.py", &[]);
}

#[test]
fn contract_holds_here() {
    for isolation in ["process", "none"] {
        let mut server = Server::new().backend_dir(contract(SONAME));
        for (name, config) in contract_models() {
            server = server.model(name, config);
        }
        for flag in CONTRACT_FLAGS {
            server = server.flag(flag);
        }
        let server = server
            .flag("--strict-model-config=false")
            .flag(format!("--backend-config=contract,isolation={isolation}"))
            .flag("--exit-on-error=false")
            .start();
        python_v2(&server, "triton_contract.py", &[]);
        assert!(server.stop().success(), "{isolation}");
    }
}
