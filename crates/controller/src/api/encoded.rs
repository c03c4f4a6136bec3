//! The configuration in the form in which commands get it: written once, not for each of them. With ten thousand nodes that
//! would be most of what a question costs.
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use model::codec;
use model::config::Config;

/// That of the last who asked. It is held, so whoever changes it changes a copy, which is another.
#[derive(Default)]
pub struct EncodedConfig(Mutex<Option<(Arc<Config>, Bytes)>>);

impl EncodedConfig {
    pub fn of(&self, config: &Arc<Config>) -> Bytes {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, bytes)) = &*last
            && Arc::ptr_eq(known, config)
        {
            return bytes.clone();
        }
        let bytes = Bytes::from(codec::encode(&*config.without_secrets()));
        *last = Some((config.clone(), bytes.clone()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_at_once() {
        let encoded = EncodedConfig::default();
        let mut config = Arc::new(Config::default());
        let first = encoded.of(&config);
        assert_eq!(first, encoded.of(&config));
        Arc::make_mut(&mut config).cluster_name = "another".into();
        assert_eq!(encoded.of(&config), codec::encode(&*config));
        assert_ne!(first, encoded.of(&config));
    }
}
