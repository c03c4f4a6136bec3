//! Calls that were put off because their user makes too many: when to make them again.
use std::time::Duration;

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, HeaderValue, Response};

/// On an answer: nothing was done; ask again after so many milliseconds.
const RETRY_HEADER: &str = "spur-retry-ms";
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The answer to a call that comes too soon.
pub fn put_off(wait: Duration) -> Response<Body> {
    let millis = wait.as_millis().max(1) as u64;
    let text = format!("too many calls of this user: ask again in {millis} ms");
    let mut answer = Status::resource_exhausted(text).into_http();
    answer.headers_mut().insert(RETRY_HEADER, HeaderValue::from(millis));
    answer
}

/// How long to wait before the call is made again, if it was put off; those who were put off together do not come together.
pub(crate) fn wait_of(headers: &HeaderMap) -> Option<Duration> {
    let millis: u64 = headers.get(RETRY_HEADER)?.to_str().ok()?.parse().ok()?;
    let wait = Duration::from_millis(millis).min(WAIT_MAX);
    let chance = f64::from(u32::from_le_bytes(crate::random::bytes())) / f64::from(u32::MAX);
    Some(wait.mul_f64(1.0 + chance))
}

/// Waits, with an event loop or without.
pub(crate) async fn pause(wait: Duration) {
    match tokio::runtime::Handle::try_current() {
        Ok(_) => tokio::time::sleep(wait).await,
        Err(_) => std::thread::sleep(wait),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_waits_as_long_as_it_is_told_and_up_to_twice_that() {
        let answer = put_off(Duration::from_millis(400));
        for _ in 0..100 {
            let wait = wait_of(answer.headers()).unwrap();
            assert!((400..=800).contains(&wait.as_millis()), "{wait:?}");
        }
        assert_eq!(wait_of(&HeaderMap::new()), None);
        assert!(wait_of(put_off(Duration::from_secs(1 << 40)).headers()).unwrap() <= WAIT_MAX * 2);
    }
}
