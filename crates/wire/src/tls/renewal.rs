//! Certificates renew themselves: when two thirds of their life have passed, whoever leads gives the next one.
//!
//! A controller goes on showing the old one until shortly before its end, so that agents hear of the next one in time.
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::codec;
use model::trust::Joined;

use super::Principal;
use super::connect::{Expected, connect};
use super::identity::{Keyring, NewKey};
use crate::channel::MAX_MESSAGE_BYTES;
use crate::proto::CommandRequest;
use crate::proto::controller_client::ControllerClient;
use crate::refusal::CallError;

/// How often a certificate's age is looked at, at least.
const LOOK: Duration = Duration::from_secs(60);

/// Never ends. Any of the addresses will do.
pub async fn keep_fresh(keyring: Arc<Keyring>, controllers: impl Fn() -> Vec<String>) {
    let mut turn = 0;
    loop {
        let own = keyring.now();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let life = own.until_secs.saturating_sub(own.from_secs);
        let due = own.from_secs + life * 2 / 3;
        if keyring.has_next() {
            let shown_from = own.until_secs.saturating_sub(life / 12).max(own.from_secs);
            if now < shown_from {
                tokio::time::sleep(Duration::from_secs((shown_from - now).max(1)).min(LOOK)).await;
            } else if let Err(error) = keyring.show_next() {
                tracing::error!("the next certificate cannot be shown: {error}");
                tokio::time::sleep(LOOK).await;
            } else {
                tracing::info!("the renewed certificate is shown");
            }
            continue;
        }
        let addresses = controllers();
        if now < due || addresses.is_empty() {
            tokio::time::sleep(Duration::from_secs(due.saturating_sub(now).max(1)).min(LOOK)).await;
            continue;
        }
        match renew(&keyring, &addresses[turn % addresses.len()]).await {
            Ok(until) => tracing::info!(until, "the certificate was renewed"),
            Err(error) => {
                tracing::error!("the certificate could not be renewed: {error}");
                turn += 1;
                tokio::time::sleep(Duration::from_secs(life / 30 + 1).min(LOOK)).await;
            }
        }
    }
}

async fn renew(keyring: &Arc<Keyring>, address: &str) -> Result<u64, CallError> {
    let other = |error: std::io::Error| CallError::Other(error.to_string());
    let channel = connect(address, keyring.clone(), Expected::AnyController).await?;
    let key = NewKey::make().map_err(other)?;
    let mut client = ControllerClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let reply = client.renew(CommandRequest { command: key.public().into() }).await?.into_inner();
    let joined: Joined = codec::decode(&reply.reply).map_err(|error| CallError::Other(error.to_string()))?;
    let (certificate, life) = (&joined.certificate, (joined.from_secs, joined.until_secs));
    let kept = match keyring.now().principal {
        Principal::Controller(_) => {
            key.keep_for_later(&keyring.dir, &joined.ca_certificate, certificate, life.0, life.1)
        }
        Principal::Node(_) => {
            let kept = key.keep(&keyring.dir, &joined.ca_certificate, certificate, life.0, life.1);
            kept.and_then(|()| keyring.reload())
        }
    };
    kept.map_err(other)?;
    Ok(joined.until_secs)
}
