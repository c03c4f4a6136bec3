//! Being known by a token instead of by the kernel: JSON Web Tokens (HS256), as `scontrol token` prints them and `SLURM_JWT` holds
//! them. The claims are those of Slurm: `exp`, `iat`, and `sun`, the user's name.
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use tonic::codegen::http::HeaderMap;
use tonic::metadata::{Ascii, MetadataValue};

pub const HEADER: &str = "authorization";
/// Where commands find the token.
pub const VARIABLE: &str = "SLURM_JWT";
const SCHEME: &str = "Bearer ";

/// Why a token says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worthless {
    /// Not a token, or not one of this kind.
    Malformed,
    /// Somebody else has signed it.
    Forged,
    Expired,
    /// It was given out, and taken back.
    Revoked,
}

impl std::fmt::Display for Worthless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Worthless::Malformed => "Protocol authentication error: this is no token",
            Worthless::Forged => "Protocol authentication error: the token was not signed by this cluster",
            Worthless::Expired => "Protocol authentication error: the token has expired",
            Worthless::Revoked => "Protocol authentication error: the token was revoked",
        })
    }
}

/// The token of this process, ready to be sent along.
pub fn own() -> Option<MetadataValue<Ascii>> {
    let token = std::env::var(VARIABLE).ok().filter(|token| !token.is_empty())?;
    format!("{SCHEME}{}", token.trim()).parse().ok()
}

/// What came with a request.
pub fn sent(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER).map(|value| value.to_str().ok().and_then(|text| text.strip_prefix(SCHEME)).unwrap_or_default())
}

/// Whoever shows this is `user`, until then.
pub fn sign(key: &[u8], user: &str, now_secs: u64, lifespan_secs: u64) -> String {
    let encode = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = encode(serde_json::json!({ "alg": "HS256", "typ": "JWT" }));
    let until = now_secs.saturating_add(lifespan_secs);
    let claims = encode(serde_json::json!({ "exp": until, "iat": now_secs, "sun": user }));
    let signed = format!("{head}.{claims}");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    pub user: String,
    /// 0: it does not say.
    pub issued_secs: u64,
}

/// What a token of this key says. Without a key nothing is believed.
pub fn claims(key: &[u8], token: &str, now_secs: u64) -> Result<TokenClaims, Worthless> {
    let (signed, tag) = token.rsplit_once('.').ok_or(Worthless::Malformed)?;
    let (head, claims) = signed.split_once('.').ok_or(Worthless::Malformed)?;
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| Worthless::Malformed);
    let read = |text: &str| serde_json::from_slice(&decode(text)?).map_err(|_| Worthless::Malformed);
    let (head, claims): (serde_json::Value, serde_json::Value) = (read(head)?, read(claims)?);
    // Whatever else the head may ask for, nothing but this is ever tried.
    if head["alg"] != "HS256" {
        return Err(Worthless::Malformed);
    }
    let is_ours = |key| {
        hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), signed.as_bytes(), &decode(tag)?)
            .or(Err(Worthless::Forged))
    };
    if key.is_empty() {
        return Err(Worthless::Forged);
    }
    is_ours(key)?;
    let until = claims["exp"].as_u64().ok_or(Worthless::Malformed)?;
    if until <= now_secs {
        return Err(Worthless::Expired);
    }
    // Other clusters and tools call the user by these.
    let name = ["sun", "username"].iter().find_map(|claim| claims[*claim].as_str());
    let user = name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or(Worthless::Malformed)?;
    Ok(TokenClaims { user, issued_secs: claims["iat"].as_u64().unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(key: &[u8], token: &str, now_secs: u64) -> Result<String, Worthless> {
        claims(key, token, now_secs).map(|claims| claims.user)
    }

    #[test]
    fn a_token_is_believed_if_we_signed_it_and_until_it_ends() {
        let token = sign(b"key", "alice \"a\"", 1000, 60);
        assert_eq!(user(b"key", &token, 1059), Ok("alice \"a\"".into()));
        assert_eq!(user(b"key", &token, 1060), Err(Worthless::Expired));
        assert_eq!(user(b"kex", &token, 1000), Err(Worthless::Forged));
        assert_eq!(user(b"", &sign(b"", "root", 0, 60), 1), Err(Worthless::Forged), "no key, no token");
        for wrong in ["", "a", "a.b", "a.b.c", "..", "e30.e30.e30"] {
            assert_eq!(user(b"key", wrong, 0), Err(Worthless::Malformed), "{wrong}");
        }
    }

    #[test]
    fn only_our_algorithm_is_ever_tried() {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let claims = encode(r#"{"exp":9999999999,"sun":"root"}"#);
        let none = format!("{}.{claims}.", encode(r#"{"alg":"none"}"#));
        assert_eq!(user(b"key", &none, 0), Err(Worthless::Malformed));
        let unsigned = format!("{}.{claims}.", encode(r#"{"alg":"HS256"}"#));
        assert_eq!(user(b"key", &unsigned, 0), Err(Worthless::Forged));
    }

    /// The one of RFC 7515, appendix A.1: others' tokens read the same here.
    #[test]
    fn a_token_made_elsewhere_is_read() {
        let key = URL_SAFE_NO_PAD
            .decode("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
            .unwrap();
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        // Its signature holds; it names no user of ours.
        assert_eq!(user(&key, token, 0), Err(Worthless::Malformed));
        assert_eq!(user(&key, token, 1_300_819_380), Err(Worthless::Expired));
    }
}
