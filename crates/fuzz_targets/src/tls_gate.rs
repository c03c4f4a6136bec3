//! The gate of TLS: certificates and keys as DER and PEM, names in them, handshakes with whoever shows what.
use std::io::Read;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rcgen::{KeyPair, PKCS_ED25519};
use rustls::client::ResolvesClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConnection, Connection, ServerConfig, ServerConnection, SignatureScheme};
use wire::foreign_bytes::{joining_client, origin_of_header, principal_of_name, server_of};
use wire::tls::authority::Authority;
use wire::tls::identity::Identity;
use wire::tls::{Principal, fingerprint, token};

const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Every certificate has this name.
const MEMBER: &str = "member.spur";
/// A handshake takes two turns.
const TURNS_MAX: usize = 8;

/// A cluster with one node, and a stranger's certificate for the same name.
struct Gate {
    ca_pem: String,
    ca_key: String,
    /// What the controller shows of itself, and the identity made of it.
    own_pem: String,
    server: Arc<ServerConfig>,
    pin: [u8; 32],
    node: CertificateDer<'static>,
    node_key: PrivateKeyDer<'static>,
    stranger: CertificateDer<'static>,
}

fn signed(authority: &Authority, who: &Principal) -> (String, KeyPair) {
    let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
    let issued = authority.sign(who, key.public_key_raw(), LIFETIME).expect("a certificate");
    (issued.pem, key)
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("it was just made")
}

static GATE: LazyLock<Gate> = LazyLock::new(|| {
    let (ca_pem, ca_key) = Authority::create().expect("an authority");
    let authority = Authority::open(&ca_key).expect("it was just made");
    let (own, own_key) = signed(&authority, &Principal::Controller(1));
    let own_pem = format!("# from 1 until 2\n{own}{}", own_key.serialize_pem());
    let identity = Identity::read(ca_pem.clone(), &own_pem).expect("it was just made");
    let (node, node_key) = signed(&authority, &Principal::Node("n1".into()));
    let (_, other_key) = Authority::create().expect("an authority");
    let (stranger, _) = signed(&Authority::open(&other_key).expect("it was just made"), &Principal::Node("n1".into()));
    Gate {
        server: server_of(&identity),
        pin: token::mark(&ca_pem).expect("a certificate").try_into().expect("32 bytes"),
        node: der(&node),
        node_key: PrivateKeyDer::from_pem_slice(node_key.serialize_pem().as_bytes()).expect("it was just made"),
        stranger: der(&stranger),
        own_pem,
        ca_pem,
        ca_key,
    }
});

pub fn seeds() -> Vec<Vec<u8>> {
    let gate = &*GATE;
    let seed = |which: u8, content: &[u8]| [&[which], content].concat();
    let hello = first_words(gate);
    let mut seeds = vec![
        seed(1, gate.ca_pem.as_bytes()),
        seed(1, gate.ca_key.as_bytes()),
        seed(1, gate.own_pem.as_bytes()),
        seed(2, &hello),
        seed(5, b"node:n1 1000 100"),
        seed(5, Principal::Node("gpu-7".into()).dns_name().as_bytes()),
        seed(5, Principal::Controller(3).dns_name().as_bytes()),
    ];
    for certificate in [&gate.node, &gate.stranger] {
        seeds.extend([0, 3, 4].map(|which| seed(which, certificate)));
    }
    seeds
}

pub fn run(bytes: &[u8]) {
    let Some((which, content)) = bytes.split_first() else { return };
    match which % 6 {
        0 => {
            let certificate = CertificateDer::from(content.to_vec());
            drop((Principal::of(&certificate), fingerprint(&certificate)));
        }
        1 => read_pem(&String::from_utf8_lossy(content)),
        2 => {
            // Records of a stranger's own making.
            let server = ServerConnection::new(GATE.server.clone()).expect("a server");
            drop(hear(&mut server.into(), content));
        }
        3 => show_to_controller(content),
        4 => show_to_newcomer(content),
        _ => read_names(&String::from_utf8_lossy(content)),
    }
}

fn read_pem(text: &str) {
    drop((token::Token::new(text), token::mark(text)));
    drop(Authority::open(text).map(|authority| authority.sign(&Principal::Controller(1), &[7; 32], LIFETIME)));
    drop(Identity::read(text.to_owned(), text));
    drop(Identity::read(GATE.ca_pem.clone(), text));
}

fn read_names(text: &str) {
    if let Some(principal) = principal_of_name(text) {
        assert_eq!(principal_of_name(&principal.dns_name()), Some(principal));
    }
    if let Some(origin) = origin_of_header(text) {
        assert_eq!(origin_of_header(&origin.written()), Some(origin));
    }
}

#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesClientCert for Shows {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ResolvesServerCert for Shows {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// The certificate with the node's key, whatever the certificate is.
fn shows(certificate: &[u8], chain: Option<CertificateDer<'static>>) -> Arc<Shows> {
    let key = ring::sign::any_supported_type(&GATE.node_key).expect("a key");
    let certificates = std::iter::once(CertificateDer::from(certificate.to_vec())).chain(chain).collect();
    Arc::new(Shows(Arc::new(CertifiedKey::new(certificates, key))))
}

/// Only the certificate that the authority has signed, with the key it was signed for, makes somebody a node.
fn show_to_controller(certificate: &[u8]) {
    let mut client = joining_client(GATE.pin).expect("a client");
    client.client_auth_cert_resolver = shows(certificate, None);
    let name = ServerName::try_from(MEMBER).expect("a name");
    let client = ClientConnection::new(Arc::new(client), name).expect("a client");
    let server = ServerConnection::new(GATE.server.clone()).expect("a server");
    let (_, server) = shake_hands(client.into(), server.into());
    let Connection::Server(server) = server else { panic!("it was a server") };
    if let (false, Some([shown, ..])) = (server.is_handshaking(), server.peer_certificates()) {
        assert_eq!(*shown, GATE.node, "{:?} came in", Principal::of(shown));
    }
}

/// A machine that joins believes nobody but a controller that its token's authority has signed.
fn show_to_newcomer(certificate: &[u8]) {
    let authority = CertificateDer::from_pem_slice(GATE.ca_pem.as_bytes()).ok();
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("a version")
        .with_no_client_auth()
        .with_cert_resolver(shows(certificate, authority));
    let name = ServerName::try_from(MEMBER).expect("a name");
    let client = ClientConnection::new(Arc::new(joining_client(GATE.pin).expect("a client")), name).expect("a client");
    let server = ServerConnection::new(Arc::new(server)).expect("a server");
    let (client, _) = shake_hands(client.into(), server.into());
    let Connection::Client(client) = client else { panic!("it was a client") };
    if let (false, Some([shown, ..])) = (client.is_handshaking(), client.peer_certificates()) {
        assert_eq!(*shown, GATE.node, "{:?} was believed", Principal::of(shown));
    }
}

fn shake_hands(mut one: Connection, mut other: Connection) -> (Connection, Connection) {
    for _ in 0..TURNS_MAX {
        let is_heard = hear(&mut other, &words(&mut one)).is_ok() && hear(&mut one, &words(&mut other)).is_ok();
        if !is_heard || !(one.is_handshaking() || other.is_handshaking()) {
            break;
        }
    }
    (one, other)
}

fn words(from: &mut Connection) -> Vec<u8> {
    let mut said = Vec::new();
    while from.wants_write() && from.write_tls(&mut said).is_ok_and(|n_bytes| n_bytes > 0) {}
    said
}

fn hear(by: &mut Connection, mut said: &[u8]) -> Result<(), rustls::Error> {
    let mut plain = Vec::new();
    while !said.is_empty() && by.read_tls(&mut said).is_ok_and(|n_bytes| n_bytes > 0) {
        by.process_new_packets()?;
        drop(by.reader().read_to_end(&mut plain));
    }
    Ok(())
}

fn first_words(gate: &Gate) -> Vec<u8> {
    let name = ServerName::try_from(MEMBER).expect("a name");
    let client = ClientConnection::new(Arc::new(joining_client(gate.pin).expect("a client")), name);
    words(&mut client.expect("a client").into())
}
