//! The flags of TLS, also by the names that perf_analyzer has for each protocol.

use super::Flags;
use crate::settings::Server;
use clap::{Arg, ArgAction, value_parser};
use std::path::PathBuf;
use trtserver_client::Tls;

const CA: &str = "tls-ca-file";
const CERTIFICATE: &str = "tls-certificate-file";
const KEY: &str = "tls-key-file";
const NAME: &str = "tls-server-name";
const INSECURE: &str = "tls-insecure";
const VERIFY_PEER: &str = "ssl-https-verify-peer";
const VERIFY_HOST: &str = "ssl-https-verify-host";
const CERTIFICATE_TYPE: &str = "ssl-https-client-certificate-type";
const KEY_TYPE: &str = "ssl-https-private-key-type";

pub(super) fn tls_arguments() -> Vec<Arg> {
    let file = |name: &'static str, aliases: [&'static str; 2], help: &'static str| {
        let arg = Arg::new(name).long(name).visible_aliases(aliases).value_name("FILE");
        arg.value_parser(value_parser!(PathBuf)).help(help)
    };
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    vec![
        file(
            CA,
            ["ssl-https-ca-certificates-file", "ssl-grpc-root-certifications-file"],
            "Authorities to trust instead of the system's (PEM)",
        ),
        file(
            CERTIFICATE,
            ["ssl-https-client-certificate-file", "ssl-grpc-certificate-chain-file"],
            "The client's certificate (PEM)",
        ),
        file(
            KEY,
            ["ssl-https-private-key-file", "ssl-grpc-private-key-file"],
            "The key of the client's certificate (PEM)",
        ),
        option(NAME, "NAME", "The name in the server's certificate (the host of -u)"),
        switch(INSECURE, "Accept any certificate"),
        switch("ssl-grpc-use-ssl", "TLS for gRPC, as with grpcs:// in -u"),
        option(VERIFY_PEER, "0|1", "perf_analyzer's flag: 0, with the next, is --tls-insecure (1)"),
        option(VERIFY_HOST, "0|1|2", "See the flag before (2)"),
        option(CERTIFICATE_TYPE, "TYPE", "perf_analyzer's flag: PEM; DER is refused (PEM)"),
        option(KEY_TYPE, "TYPE", "perf_analyzer's flag: PEM; DER is refused (PEM)"),
    ]
}

/// # Errors
/// A file cannot be read, or the flags contradict each other or `servers`.
pub(super) fn tls_settings(flags: &Flags, servers: &[Server]) -> Result<Tls, String> {
    let text = [NAME, VERIFY_PEER, VERIFY_HOST, CERTIFICATE_TYPE, KEY_TYPE];
    let given = text.into_iter().find(|name| flags.text(name).is_some());
    let given = given.or_else(|| flags.set(INSECURE).then_some(INSECURE));
    let given = given.or([CA, CERTIFICATE, KEY].into_iter().find(|n| flags.path(n).is_some()));
    let given = given.or_else(|| flags.set("ssl-grpc-use-ssl").then_some("ssl-grpc-use-ssl"));
    if let Some(name) = given
        && !servers.iter().any(|server| server.tls)
    {
        return Err(format!(
            "--{name}: no server is asked over TLS: https:// or grpcs:// in -u, or --ssl-grpc-use-ssl with -i grpc"
        ));
    }
    for name in [CERTIFICATE_TYPE, KEY_TYPE] {
        match flags.text(name).unwrap_or("PEM") {
            "PEM" => {}
            "DER" => return Err(format!("--{name} DER: only PEM files are read")),
            other => return Err(format!("--{name}: '{other}' is not PEM")),
        }
    }
    let peer = read_choice(flags, VERIFY_PEER, &["0", "1"])?.unwrap_or("1") == "1";
    let host = read_choice(flags, VERIFY_HOST, &["0", "1", "2"])?.unwrap_or("2") != "0";
    if peer != host {
        return Err(format!(
            "--{VERIFY_PEER} and --{VERIFY_HOST} must both be 0, or neither: a certificate is verified with its name, or not at all"
        ));
    }
    let read = |name: &str| {
        let read = |path: PathBuf| {
            std::fs::read(&path).map_err(|e| format!("--{name} {}: {e}", path.display()))
        };
        flags.path(name).map(read).transpose()
    };
    let mut tls = Tls::default();
    (tls.authorities, tls.certificate, tls.key) = (read(CA)?, read(CERTIFICATE)?, read(KEY)?);
    if tls.certificate.is_some() != tls.key.is_some() {
        return Err(format!("--{CERTIFICATE} and --{KEY} belong together"));
    }
    tls.server_name = flags.text(NAME).map(str::to_owned);
    tls.insecure = flags.set(INSECURE) || !peer;
    Ok(tls)
}

fn read_choice<'f>(flags: &'f Flags, name: &str, all: &[&str]) -> Result<Option<&'f str>, String> {
    match flags.text(name) {
        Some(value) if !all.contains(&value) => {
            Err(format!("--{name}: '{value}' is not one of {}", all.join(", ")))
        }
        value => Ok(value),
    }
}
