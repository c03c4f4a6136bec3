//! Many whole lives of a cluster. `SEEDS=2000` tries more; `SEED=17` only that one.

#[test]
fn every_seed_keeps_its_promises_and_comes_to_an_end() {
    let failed: Vec<u64> = seeds().filter(|seed| std::panic::catch_unwind(|| simulator::run(*seed)).is_err()).collect();
    assert!(failed.is_empty(), "{} seeds failed; try SEED={}", failed.len(), failed[0]);
}

#[allow(clippy::disallowed_methods, reason = "how many seeds is asked for from outside")]
fn seeds() -> std::ops::RangeInclusive<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    match (number("SEED"), number("SEEDS")) {
        (Some(seed), _) => seed..=seed,
        (None, n_seeds) => 1..=n_seeds.unwrap_or(100),
    }
}
