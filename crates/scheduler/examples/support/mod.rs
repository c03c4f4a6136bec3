//! What the measuring programs share.
use std::time::Duration;

/// Time this thread has had a CPU, so that a busy machine does not count.
#[allow(clippy::disallowed_methods, reason = "measures time; not part of the scheduler")]
pub fn on_cpu() -> Duration {
    // The kernel keeps the books when it switches, otherwise only once a tick.
    std::thread::yield_now();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let nanos = told.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("the first word is a number"))
}
