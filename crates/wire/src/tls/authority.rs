//! The cluster's own certificate authority.
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ED25519, PublicKeyData, SignatureAlgorithm,
};

use super::{COMMON_NAME, Principal, fingerprint};

/// The authority outlives every certificate it gives.
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(20 * 365 * 24 * 3600);
/// Clocks of machines differ.
const TOLERANCE: Duration = Duration::from_secs(24 * 3600);

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate that was given out.
pub struct Issued {
    pub pem: String,
    pub fingerprint: String,
    pub from_secs: u64,
    pub until_secs: u64,
}

impl Authority {
    /// A new one: its certificate and its key, both as PEM.
    pub fn create() -> Result<(String, String), Failure> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let certificate: Certificate = parameters().self_signed(&key)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    pub fn open(key_pem: &str) -> Result<Authority, Failure> {
        Ok(Authority { issuer: Issuer::new(parameters(), KeyPair::from_pem(key_pem)?) })
    }

    /// Whoever has the other half of this key is `who`, until then.
    pub fn sign(&self, who: &Principal, public_key: &[u8], lifetime: Duration) -> Result<Issued, Failure> {
        if public_key.len() != 32 {
            return Err("not a key".into());
        }
        let mut parameters = CertificateParams::new(vec![COMMON_NAME.to_owned(), who.dns_name()])?;
        parameters.distinguished_name = name("Spur member");
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        parameters.not_before = rcgen::date_time_ymd(1970, 1, 1) + now.saturating_sub(TOLERANCE);
        parameters.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + lifetime;
        let certificate = parameters.signed_by(&Given(public_key.to_vec()), &self.issuer)?;
        Ok(Issued {
            pem: certificate.pem(),
            fingerprint: fingerprint(certificate.der()),
            from_secs: now.as_secs(),
            until_secs: (now + lifetime).as_secs(),
        })
    }
}

fn parameters() -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = name("Spur authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    parameters.not_before = rcgen::date_time_ymd(1970, 1, 1) + now.saturating_sub(TOLERANCE);
    parameters.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + AUTHORITY_LIFETIME;
    parameters
}

fn name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

/// The public half of somebody's Ed25519 key.
struct Given(Vec<u8>);

impl PublicKeyData for Given {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}
