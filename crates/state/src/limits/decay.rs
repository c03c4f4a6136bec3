//! How use is forgotten: half of it in every half-life. Computed with additions and products only, so all machines agree to the bit.
use model::Config;
use model::accounts::Accounts;

use super::{Party, Whom};

/// Whose use is forgotten how fast.
#[derive(Clone, Copy)]
pub struct Decay<'a> {
    /// Seconds; None: nothing is forgotten.
    half_life: Option<f64>,
    accounts: &'a Accounts,
}

impl<'a> Decay<'a> {
    pub fn new(config: &Config, accounts: &'a Accounts) -> Self {
        let secs = config.scheduler.priority.half_life.secs();
        Decay { half_life: (secs > 0).then_some(secs as f64), accounts }
    }

    /// Seconds.
    pub fn of_associations(&self) -> Option<f64> {
        self.half_life
    }

    /// Seconds; None for a QOS that forgets nothing.
    pub fn of(&self, whom: Whom) -> Option<f64> {
        let qos = match whom {
            Party::Association(_) => return self.half_life,
            Party::Qos(qos) | Party::QosUser(qos, _) | Party::QosAccount(qos, _) => qos,
        };
        let keeps = self.accounts.qos.get(qos).is_some_and(|qos| qos.has_flag("NoDecay"));
        if keeps { None } else { self.half_life }
    }
}

const LN_2: f64 = std::f64::consts::LN_2;

/// What is left of 1 after so many half-lives: 2 to the power of `-n`.
pub(super) fn left_after(n: f64) -> f64 {
    if n <= 0.0 {
        return 1.0;
    }
    if n >= 1000.0 {
        return 0.0;
    }
    let whole = n.floor();
    let exponent = (n - whole) * -LN_2;
    // The series of e^x; twenty terms are exact for |x| < 0.7.
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..=20 {
        term *= exponent / f64::from(k);
        sum += term;
    }
    sum * f64::from_bits((1023 - whole as u64) << 52)
}

/// Seconds of steady use that are still remembered at the end of so many seconds.
pub(super) fn remembered_secs(secs: f64, half_life: Option<f64>) -> f64 {
    match half_life {
        None => secs,
        Some(half_life) => (1.0 - left_after(secs / half_life)) * half_life / LN_2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_left_after_each_half_life() {
        assert_eq!(left_after(0.0), 1.0);
        for (n, left) in [(1.0, 0.5), (2.0, 0.25), (10.0, 1.0 / 1024.0), (0.5, 0.5f64.sqrt()), (3.75, 2f64.powf(-3.75))]
        {
            assert!((left_after(n) - left).abs() < 1e-15 * left.max(1e-3), "{n}: {}", left_after(n));
        }
        assert_eq!(left_after(5000.0), 0.0);
        assert_eq!(remembered_secs(60.0, None), 60.0);
        let short = remembered_secs(60.0, Some(604_800.0));
        assert!(short < 60.0 && short > 59.99, "{short}");
    }
}
