//! Connecting over TLS, to somebody in particular.
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::identity::Keyring;
use super::tracked_stream::TrackedStream;
use super::{COMMON_NAME, Principal, fingerprint, token};
use crate::channel::{endpoint, root_cause, watchful};
use crate::refusal::CallError;

const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// Whom the other end must prove to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    AnyController,
    Node(String),
    /// The node of this name, by one of these certificates, which the state knows. None: an earlier release does not tell.
    NodeShowing(String, Vec<String>),
}

impl Expected {
    fn is(&self, found: Option<&Principal>) -> bool {
        match (self, found) {
            (Expected::AnyController, Some(Principal::Controller(_))) => true,
            (Expected::Node(name) | Expected::NodeShowing(name, _), Some(Principal::Node(found))) => name == found,
            _ => false,
        }
    }

    fn is_known(&self, fingerprint: &str) -> bool {
        match self {
            Expected::NodeShowing(_, known) => known.is_empty() || known.iter().any(|one| one == fingerprint),
            Expected::AnyController | Expected::Node(_) => true,
        }
    }
}

/// Shows our own certificate. The connection breaks when the other end stands still.
pub async fn connect(address: &str, keyring: Arc<Keyring>, expected: Expected) -> Result<Channel, CallError> {
    let target = address.to_owned();
    let connector = service_fn(move |_| {
        let (keyring, expected, target) = (keyring.clone(), expected.clone(), target.clone());
        async move {
            let stream = open(&target, keyring.now().client.clone(), &expected).await?;
            let place = keyring.track(shown(&stream), stream.get_ref().0);
            let mark = shown(&stream).map(fingerprint).unwrap_or_default();
            let found = shown(&stream).and_then(Principal::of);
            match keyring.believes(found.as_ref(), &mark) && expected.is_known(&mark) {
                true => Ok(TokioIo::new(TrackedStream::new(place, stream))),
                false => Err(io::Error::other(format!("the cluster knows no such certificate as {target} shows"))),
            }
        }
    });
    finish(watchful(endpoint()), address, connector).await
}

/// Shows nothing, and believes only the authority with this mark.
pub async fn connect_pinned(address: &str, pin: [u8; 32]) -> Result<Channel, CallError> {
    let client = pinned_client(pin).map_err(|error| CallError::Other(error.to_string()))?;
    let (client, target) = (Arc::new(client), address.to_owned());
    let connector = service_fn(move |_| {
        let (client, target) = (client.clone(), target.clone());
        async move {
            let stream = open(&target, client, &Expected::AnyController).await?;
            Ok(TokioIo::new(TrackedStream::new(None, stream)))
        }
    });
    finish(watchful(endpoint()), address, connector).await
}

pub(crate) fn pinned_client(pin: [u8; 32]) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { pin, provider }))
        .with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec()];
    Ok(client)
}

async fn finish<C>(endpoint: Endpoint, address: &str, connector: C) -> Result<Channel, CallError>
where
    C: tower::Service<
            tonic::codegen::http::Uri,
            Response = TokioIo<TrackedStream<TlsStream<TcpStream>>>,
            Error = io::Error,
            Future: Send,
        > + Send
        + 'static,
{
    endpoint
        .connect_with_connector(connector)
        .await
        .map_err(|error| CallError::Unreachable { socket: address.into(), why: root_cause(&error) })
}

async fn open(address: &str, client: Arc<ClientConfig>, expected: &Expected) -> io::Result<TlsStream<TcpStream>> {
    let connecting = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(COMMON_NAME).map_err(io::Error::other)?;
        let stream = TlsConnector::from(client).connect(name, stream).await?;
        let found = shown(&stream).and_then(Principal::of);
        match expected.is(found.as_ref()) {
            true => Ok(stream),
            false => Err(io::Error::other(format!("{address} is {found:?}, not {expected:?}"))),
        }
    };
    tokio::time::timeout(CONNECT_PATIENCE, connecting).await.map_err(|_| io::Error::other("it does not answer"))?
}

fn shown(stream: &TlsStream<TcpStream>) -> Option<&CertificateDer<'static>> {
    stream.get_ref().1.peer_certificates().and_then(|chain| chain.first())
}

/// Believes a chain that leads to the one authority we were told of.
#[derive(Debug)]
struct Pinned {
    pin: [u8; 32],
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let authority = intermediates.iter().find(|one| token::pin(one) == self.pin);
        let authority =
            authority.ok_or_else(|| rustls::Error::General("this is not the cluster of the token".into()))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone())
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
