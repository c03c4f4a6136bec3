//! Numbers of orders. An agent that was told something by an earlier leader answers with that leader's number, however late: no two
//! leaders may use the same.
use std::hash::{BuildHasher, Hasher, RandomState};

/// What a leader's numbers begin after. They have room for as many orders as anybody can give.
pub fn beginning() -> u64 {
    let random = RandomState::new().build_hasher().finish();
    (random | 1 << 63) & !u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn no_two_leaders_have_the_same_numbers() {
        let all: std::collections::BTreeSet<u64> = (0..100).map(|_| beginning()).collect();
        assert!(all.len() == 100 && all.iter().all(|first| *first != 0 && first % (1 << 32) == 0));
    }
}
