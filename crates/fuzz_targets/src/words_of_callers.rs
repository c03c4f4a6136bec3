//! What callers say of themselves before anybody believes them: tokens, headers, names in certificates.
use wire::bearer;

const KEY: &[u8] = b"a key of thirty-two bytes, or so";

pub fn seeds() -> Vec<Vec<u8>> {
    let token = bearer::sign(KEY, "alice", 1_000, 1_000);
    vec![token.into_bytes(), b"local 1000 100".to_vec(), b"controller:1".to_vec(), b"a.b.c".to_vec()]
}

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(claims) = bearer::claims(KEY, text, 1_500) {
        // Who is believed was signed by us: the fuzzer does not know how to.
        assert_eq!(claims.user, "alice", "{text}");
    }
    drop(text.parse::<wire::tls::token::Token>());
}
