//! What a daemon shows of itself: its certificate and key, and the authority it believes. Replaced while it runs.
//!
//! ```text
//!  DIR/ca.pem         the authority's certificate
//!  DIR/identity.pem   # from SECONDS until SECONDS, own certificate, own key; replaced whole
//!  DIR/identity.next  the same, of a controller: shown when everybody has heard of it
//! ```
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use rcgen::{KeyPair, PKCS_ED25519};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::Principal;
use super::certificate_belief::CertificateBelief;
use super::tracked_stream::{TrackedConnections, TrackedPlace};

/// A key that has no certificate yet.
pub struct NewKey {
    pair: KeyPair,
}

impl NewKey {
    pub fn make() -> io::Result<NewKey> {
        Ok(NewKey { pair: KeyPair::generate_for(&PKCS_ED25519).map_err(io::Error::other)? })
    }

    pub fn public(&self) -> Vec<u8> {
        self.pair.public_key_raw().to_vec()
    }

    pub fn pem(&self) -> String {
        self.pair.serialize_pem()
    }

    /// Writes what this machine shows from now on.
    pub fn keep(&self, dir: &Path, ca_pem: &str, certificate_pem: &str, from: u64, until: u64) -> io::Result<()> {
        write_identity(dir, SHOWN, (ca_pem, certificate_pem, &self.pem()), (from, until))?;
        forget_next(dir)
    }

    /// Writes what this machine shows when it is told to: see [`Keyring::show_next`].
    pub fn keep_for_later(
        &self,
        dir: &Path,
        ca_pem: &str,
        certificate_pem: &str,
        from: u64,
        until: u64,
    ) -> io::Result<()> {
        write_identity(dir, NEXT, (ca_pem, certificate_pem, &self.pem()), (from, until))
    }
}

const SHOWN: &str = "identity.pem";
const NEXT: &str = "identity.next";

/// Authority, certificate and key, as PEM, and when they count.
pub fn write_identity(
    dir: &Path,
    file: &str,
    (ca_pem, certificate_pem, key_pem): (&str, &str, &str),
    (from, until): (u64, u64),
) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    replace(&dir.join("ca.pem"), ca_pem)?;
    replace(&dir.join(file), &format!("# from {from} until {until}\n{certificate_pem}{key_pem}"))
}

fn forget_next(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join(NEXT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Readers see the old file or the new one; only the owner sees any.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_bytes(path, text.as_bytes())
}

pub fn replace_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

pub struct Identity {
    pub principal: Principal,
    pub fingerprint: String,
    pub from_secs: u64,
    pub until_secs: u64,
    pub ca_pem: String,
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: Arc<ClientConfig>,
}

impl Identity {
    pub fn load(dir: &Path) -> io::Result<Identity> {
        let ca_pem = fs::read_to_string(dir.join("ca.pem"))?;
        Identity::read(ca_pem, &fs::read_to_string(dir.join("identity.pem"))?)
    }

    /// What the two files hold.
    pub fn read(ca_pem: String, own: &str) -> io::Result<Identity> {
        let certificate = CertificateDer::from_pem_slice(own.as_bytes()).map_err(io::Error::other)?;
        let key = || PrivateKeyDer::from_pem_slice(own.as_bytes()).map_err(io::Error::other);
        let authority = CertificateDer::from_pem_slice(ca_pem.as_bytes()).map_err(io::Error::other)?;
        let principal = Principal::of(&certificate).ok_or_else(|| io::Error::other("a certificate of nobody"))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone()).map_err(io::Error::other)?;
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // Those without a certificate may only ask to join.
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(io::Error::other)?;
        let chain = vec![certificate.clone(), authority];
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key()?)
            .map_err(io::Error::other)?;
        server.alpn_protocols = vec![b"h2".to_vec()];
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key()?)
            .map_err(io::Error::other)?;
        client.alpn_protocols = vec![b"h2".to_vec()];
        let (from_secs, until_secs) = lifetime(own).unwrap_or((0, 0));
        Ok(Identity {
            principal,
            fingerprint: super::fingerprint(&certificate),
            from_secs,
            until_secs,
            ca_pem,
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }
}

fn lifetime(text: &str) -> Option<(u64, u64)> {
    let (from, until) = text.lines().next()?.strip_prefix("# from ")?.split_once(" until ")?;
    Some((from.parse().ok()?, until.parse().ok()?))
}

/// The identity that counts now.
pub struct Keyring {
    pub dir: PathBuf,
    current: RwLock<Arc<Identity>>,
    belief: RwLock<CertificateBelief>,
    open: TrackedConnections,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyring").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Keyring {
    pub fn open(dir: &Path) -> io::Result<Keyring> {
        let current = RwLock::new(Arc::new(Identity::load(dir)?));
        Ok(Keyring { dir: dir.into(), current, belief: RwLock::default(), open: TrackedConnections::default() })
    }

    /// From now on. Connections whose certificates were taken back end; those whose certificates have ended by themselves
    /// since they were opened go on.
    pub fn believe(&self, belief: CertificateBelief) {
        *self.belief.write().expect("nobody panics with it") = belief;
        let belief = self.belief.read().expect("nobody panics with it");
        self.open.close_all(|fingerprint| belief.taken_back.contains(fingerprint));
    }

    pub fn believes(&self, principal: Option<&Principal>, fingerprint: &str) -> bool {
        self.belief.read().expect("nobody panics with it").holds(principal, fingerprint)
    }

    /// To be asked for before [`Keyring::believes`] is: what is believed may change in between.
    pub(crate) fn track(&self, shown: Option<&CertificateDer>, socket: &impl AsRawFd) -> Option<TrackedPlace> {
        shown.map(|shown| self.open.enter(Principal::of(shown), super::fingerprint(shown), socket))
    }

    /// A certificate waits to be shown.
    pub fn has_next(&self) -> bool {
        self.dir.join(NEXT).exists()
    }

    /// Shows the certificate that was kept for later.
    pub fn show_next(&self) -> io::Result<()> {
        fs::rename(self.dir.join(NEXT), self.dir.join(SHOWN))?;
        self.reload()
    }

    pub fn now(&self) -> Arc<Identity> {
        self.current.read().expect("nobody panics with it").clone()
    }

    /// New connections show what the files hold now.
    pub fn reload(&self) -> io::Result<()> {
        *self.current.write().expect("nobody panics with it") = Arc::new(Identity::load(&self.dir)?);
        Ok(())
    }
}
