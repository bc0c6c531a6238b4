//! The checks of tests/triton/contract.c hold here, and in Triton itself: what they expect of our
//! host is what Triton does.

use trtserver_tests::triton::Triton;
use trtserver_tests::triton_backends::{
    CONTRACT_FLAGS, SONAME, SONAME_IN_WHEEL, contract, contract_models, unused_model,
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
        for (name, config) in contract_models().into_iter().chain(unused_model()) {
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
        // What models and instances have reported (check_model.c).
        let memory = server.get("/v2/trtserver/memory").json();
        let of_inner = memory["models"].as_array().into_iter().flatten();
        let of_inner = of_inner.filter(|owner| owner["name"] == "inner");
        let entries = of_inner.flat_map(|owner| owner["memory"].as_array().into_iter().flatten());
        let reported = entries.filter(|entry| entry["holder"] == "reported_by_backend");
        let bytes: u64 = reported.filter_map(|entry| entry["byte_size"].as_u64()).sum();
        assert_eq!(bytes, 2 * 12345, "{memory}");
        assert!(server.stop().success(), "{isolation}");
    }
}
