//! Many whole lives of a cluster. `SEEDS=1-2000` tries more, `SEED=17` only that one. From 1000 on features are mixed, from 10000
//! on with prologs and epilogs in every one.

/// Quick enough for every run of the tests.
const USUAL: [(u64, u64); 3] = [(1, 80), (1000, 1011), (10_000, 10_007)];

#[test]
fn every_seed_keeps_its_promises_and_comes_to_an_end() {
    let mut failed = Vec::new();
    for (first, last) in seeds() {
        failed.extend((first..=last).filter(|seed| std::panic::catch_unwind(|| simulator::run(*seed)).is_err()));
    }
    assert!(failed.is_empty(), "{} seeds failed: {failed:?}", failed.len());
}

#[allow(clippy::disallowed_methods, reason = "which seeds is asked for from outside")]
fn seeds() -> Vec<(u64, u64)> {
    let number = |text: &str| text.parse().expect("a number");
    if let Ok(seed) = std::env::var("SEED") {
        return vec![(number(&seed), number(&seed))];
    }
    match std::env::var("SEEDS") {
        Ok(asked) => match asked.split_once('-') {
            Some((from, to)) => vec![(number(from), number(to))],
            None => vec![(1, number(&asked))],
        },
        Err(_) => USUAL.to_vec(),
    }
}
