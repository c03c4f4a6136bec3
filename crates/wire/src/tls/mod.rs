//! Mutual TLS between machines: the cluster's own authority, who a certificate is, and connections that know both ends.
//! TLS 1.3 only; nothing listens on TCP without it.
pub mod authority;
pub mod certificate_belief;
pub mod connect;
mod handshake_turns;
pub mod identity;
pub mod listen;
pub mod nodes;
pub mod renewal;
pub mod token;
pub mod tracked_stream;

use rustls::pki_types::CertificateDer;

/// Every certificate has this name too, so that connections can ask for it.
pub(crate) const COMMON_NAME: &str = "member.spur";

/// Whom a certificate was given to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Principal {
    Controller(u64),
    Node(String),
}

impl Principal {
    /// As it stands in the certificate. A node's name may hold what a DNS name may not: it is written in hexadecimal.
    pub fn dns_name(&self) -> String {
        match self {
            Principal::Controller(member) => format!("{member}.controller.spur"),
            Principal::Node(name) => {
                let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
                let labels: Vec<&str> =
                    digits.as_bytes().chunks(60).map(|label| str::from_utf8(label).unwrap_or_default()).collect();
                format!("{}.node.spur", labels.join("."))
            }
        }
    }

    pub(crate) fn read(name: &str) -> Option<Principal> {
        if let Some(member) = name.strip_suffix(".controller.spur") {
            return member.parse().ok().map(Principal::Controller);
        }
        let digits: String = name.strip_suffix(".node.spur")?.split('.').collect();
        if !digits.len().is_multiple_of(2) {
            return None;
        }
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
        String::from_utf8(bytes?).ok().filter(|name| !name.is_empty()).map(Principal::Node)
    }

    pub fn of(certificate: &CertificateDer) -> Option<Principal> {
        let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
        certificate.valid_dns_names().find_map(Principal::read)
    }
}

/// What the state knows a certificate by.
pub fn fingerprint(certificate: &CertificateDer) -> String {
    blake3::hash(certificate).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_their_certificates() {
        let long = "gpu-Rack_07.".repeat(9);
        for who in [Principal::Controller(12), Principal::Node("n1".into()), Principal::Node(long)] {
            assert_eq!(Principal::read(&who.dns_name()), Some(who));
        }
        for wrong in ["member.spur", "x.controller.spur", ".node.spur", "6.node.spur", "zz.node.spur"] {
            assert_eq!(Principal::read(wrong), None, "{wrong}");
        }
    }
}
