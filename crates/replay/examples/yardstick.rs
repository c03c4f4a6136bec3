//! Our scheduler beside textbook EASY on made workloads:
//! `cargo run --release -p replay --example yardstick [jobs] [cpus] [load] [seeds] [places]`.
#![allow(clippy::disallowed_types, reason = "measures time; not part of the crate")]
use replay::{Machine, easy, made, run};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |usual: f64| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (n_requests, n_cpus, load) = (argument(3_000.0) as usize, argument(256.0) as u32, argument(0.85));
    let n_seeds = argument(10.0) as u64;
    let mut config = Machine { n_nodes: n_cpus.div_ceil(16), cpus_per_node: 16 }.config();
    let n_reservations = &mut config.scheduler.backfill.n_reservations;
    *n_reservations = argument(f64::from(*n_reservations)) as u32;
    println!("{n_requests} jobs, {n_cpus} CPUs, load {load}, {n_reservations} places in the future");
    println!("seed  slowdown ours/EASY  ratio   mean wait ours/EASY   utilisation ours/EASY  plans  seconds");
    let (mut slowdowns, mut waits) = ((0.0, 0.0), (0.0, 0.0));
    let mut logarithms = 0.0;
    for seed in 1..=n_seeds {
        let workload = made::workload(&made::Recipe { seed, n_requests, n_cpus, load });
        let begin = std::time::Instant::now();
        let outcome = run(&config, &workload, &mut |_| ());
        let secs = begin.elapsed().as_secs_f64();
        let (ours, theirs) = (outcome.summary(&workload), easy::run(u64::from(n_cpus), &workload).summary(&workload));
        let ratio = ours.bounded_slowdown / theirs.bounded_slowdown;
        slowdowns = (slowdowns.0 + ours.bounded_slowdown, slowdowns.1 + theirs.bounded_slowdown);
        waits = (waits.0 + ours.mean_wait, waits.1 + theirs.mean_wait);
        logarithms += ratio.ln();
        println!(
            "{seed:4}  {:8.2} {:8.2}   {ratio:5.3}   {:8.0} {:8.0}      {:.3} {:.3}   {:7}  {secs:.1}",
            ours.bounded_slowdown,
            theirs.bounded_slowdown,
            ours.mean_wait,
            theirs.mean_wait,
            ours.utilisation,
            theirs.utilisation,
            outcome.n_plans
        );
    }
    println!(
        "all   slowdown {:.3} of EASY's (mean), {:.3} (geometric); wait {:.3}",
        slowdowns.0 / slowdowns.1,
        (logarithms / n_seeds as f64).exp(),
        waits.0 / waits.1
    );
}
