//! Join tokens: a secret that is good once, and the mark of the authority, so that nobody else can be joined by mistake.
use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Says what it is, and keeps it from beginning with a dash, which commands would take for an option.
const PREFIX: &str = "spur-";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub secret: [u8; 16],
    /// The hash of the authority's certificate.
    pub pin: [u8; 32],
}

impl Token {
    pub fn new(ca_pem: &str) -> Option<Token> {
        let authority = CertificateDer::from_pem_slice(ca_pem.as_bytes()).ok()?;
        Some(Token { secret: crate::random::bytes(), pin: pin(&authority) })
    }

    /// What the state keeps of it.
    pub fn hash(&self) -> String {
        hash(&self.secret)
    }
}

pub fn hash(secret: &[u8]) -> String {
    blake3::hash(secret).to_hex().to_string()
}

/// The mark of an authority, by its certificate as PEM.
pub fn mark(ca_pem: &str) -> Option<Vec<u8>> {
    CertificateDer::from_pem_slice(ca_pem.as_bytes()).ok().map(|authority| pin(&authority).to_vec())
}

pub(crate) fn pin(authority: &CertificateDer) -> [u8; 32] {
    *blake3::hash(authority).as_bytes()
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        f.write_str(&URL_SAFE_NO_PAD.encode([self.secret.as_slice(), &self.pin].concat()))
    }
}

impl FromStr for Token {
    type Err = ();

    fn from_str(text: &str) -> Result<Token, ()> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX).ok_or(())?).map_err(|_| ())?;
        let (secret, pin) = bytes.split_at_checked(16).ok_or(())?;
        Ok(Token { secret: secret.try_into().map_err(|_| ())?, pin: pin.try_into().map_err(|_| ())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_shown_and_never_looks_like_an_option() {
        let token = Token { secret: [0xf8; 16], pin: [0xff; 32] };
        let text = token.to_string();
        assert!(text.starts_with("spur--Pj4"), "{text}");
        assert_eq!(text.parse(), Ok(token));
        assert!("spur-".parse::<Token>().is_err() && "x".parse::<Token>().is_err());
    }
}
