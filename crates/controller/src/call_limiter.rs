//! Who makes too many calls is put off: judged once, by the controller that leads, before a call is heard.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::call_limit::CallLimit;

use crate::statistics::Statistics;

/// The calls of a user, and the submissions among them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CountedCalls {
    Calls,
    Submissions,
}

/// What a user has left, and when that was counted.
struct Bucket {
    left: f64,
    at: Instant,
    told_at: Option<Instant>,
}

#[derive(Clone)]
pub struct CallLimiter {
    buckets: Arc<Mutex<HashMap<(u32, CountedCalls), Bucket>>>,
    statistics: Arc<Statistics>,
}

impl CallLimiter {
    pub fn new(statistics: Arc<Statistics>) -> CallLimiter {
        CallLimiter { buckets: Arc::default(), statistics }
    }

    /// Takes one call from the user's bucket; an error is how long the user must wait for the next.
    pub fn take(&self, limit: &CallLimit, uid: u32, call: &str) -> Result<(), Duration> {
        self.take_at(limit, uid, call, Instant::now())
    }

    fn take_at(&self, limit: &CallLimit, uid: u32, call: &str, now: Instant) -> Result<(), Duration> {
        if limit.is_on {
            let period = Duration::from_micros(limit.refill_period.0.max(1));
            let pace = f64::from(limit.refill_rate.max(1)) / period.as_secs_f64();
            self.take_from(CountedCalls::Calls, f64::from(limit.bucket_size.max(1)), pace, limit, (uid, call, now))?;
        }
        if limit.submissions_per_minute > 0 && call == "Submit" {
            let size = f64::from(limit.submissions_per_minute);
            self.take_from(CountedCalls::Submissions, size, size / 60.0, limit, (uid, call, now))?;
        }
        Ok(())
    }

    fn take_from(
        &self,
        counted: CountedCalls,
        size: f64,
        pace: f64,
        limit: &CallLimit,
        (uid, call, now): (u32, &str, Instant),
    ) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let filled = |bucket: &Bucket| (bucket.left + now.duration_since(bucket.at).as_secs_f64() * pace).min(size);
        if buckets.len() >= limit.table_size.max(1) as usize && !buckets.contains_key(&(uid, counted)) {
            // Whoever has made no call for long enough is as good as unknown.
            buckets.retain(|key, bucket| key.1 != counted || filled(bucket) < size);
            if buckets.len() >= limit.table_size.max(1) as usize {
                let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(key, _)| *key);
                oldest.map(|key| buckets.remove(&key));
            }
        }
        let full = || Bucket { left: size, at: now, told_at: None };
        let bucket = buckets.entry((uid, counted)).or_insert_with(full);
        (bucket.left, bucket.at) = (filled(bucket), now);
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let wait = Duration::from_secs_f64((1.0 - bucket.left) / pace);
        let every = limit.log_every.map(|every| Duration::from_micros(every.0));
        if every.is_some_and(|every| bucket.told_at.is_none_or(|told| now.duration_since(told) >= every)) {
            bucket.told_at = Some(now);
            tracing::info!(target: "security", uid, call, wait_ms = wait.as_millis(), "put off: too many calls");
        }
        self.statistics.put_off();
        Err(wait)
    }
}

#[cfg(test)]
mod tests {
    use model::time::Span;

    use super::*;

    fn limiter() -> CallLimiter {
        CallLimiter::new(Arc::default())
    }

    #[test]
    fn bucket_gives_its_size_at_once_and_then_its_refill() {
        let limit = CallLimit {
            is_on: true,
            bucket_size: 5,
            refill_rate: 4,
            refill_period: Span::from_secs(2),
            ..Default::default()
        };
        let (limiter, start) = (limiter(), Instant::now());
        let taken = |after_ms: u64, n: usize| {
            let now = start + Duration::from_millis(after_ms);
            (0..n).filter(|_| limiter.take_at(&limit, 7, "Jobs", now).is_ok()).count()
        };
        assert_eq!(taken(0, 20), 5);
        assert_eq!(limiter.take_at(&limit, 7, "Jobs", start), Err(Duration::from_millis(500)));
        assert_eq!(taken(1001, 20), 2);
        assert_eq!(taken(100_000, 20), 5);
        assert!(limiter.take_at(&limit, 8, "Jobs", start).is_ok(), "others have buckets of their own");
        assert_eq!(limiter.statistics.n_put_off(), 15 + 1 + 18 + 15);
    }

    #[test]
    fn submissions_have_a_bucket_of_their_own() {
        let limit = CallLimit { submissions_per_minute: 3, ..Default::default() };
        let (limiter, now) = (limiter(), Instant::now());
        let submitted = (0..9).filter(|_| limiter.take_at(&limit, 7, "Submit", now).is_ok()).count();
        assert_eq!(submitted, 3);
        assert!((0..100).all(|_| limiter.take_at(&limit, 7, "Jobs", now).is_ok()));
        assert!(limiter.take_at(&limit, 7, "Submit", now + Duration::from_secs(21)).is_ok());
    }

    #[test]
    fn table_of_users_is_bounded() {
        let limit = CallLimit { is_on: true, table_size: 10, ..Default::default() };
        let (limiter, now) = (limiter(), Instant::now());
        for uid in 0..1000 {
            assert!(limiter.take_at(&limit, uid, "Jobs", now).is_ok());
        }
        assert!(limiter.buckets.lock().unwrap().len() <= 10);
    }
}
