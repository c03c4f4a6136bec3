//! What one launch costs. Not a check: run with `cargo nextest run -p agent --run-ignored only --no-capture`.
mod support;

use std::time::{Duration, Instant};

use model::agent::Order;
use support::World;

/// Launches that may be under way at once.
const WINDOW: u32 = 64;

#[tokio::test]
#[ignore = "a measurement"]
async fn no_op_scripts_a_second() {
    let mut world = World::new().await;
    let count: u32 = std::env::var("LAUNCHES").ok().and_then(|text| text.parse().ok()).unwrap_or(2000);
    let before = cpu_time();
    let begun = Instant::now();
    for job in 1..=count {
        if job > WINDOW {
            world.exit(job - WINDOW).await;
        }
        let mut launch = world.script(job, "exit 0");
        std::sync::Arc::make_mut(&mut launch.job_spec).stdout = Some("/dev/null".into());
        let number = world.number();
        world.order(Order::Launch { number, launch: Box::new(launch) });
    }
    for job in (count - WINDOW + 1)..=count {
        world.exit(job).await;
    }
    let elapsed = begun.elapsed();
    println!(
        "{count} launches: {:.0} a second, {:.0} us each; machine busy {:.0} us each",
        f64::from(count) / elapsed.as_secs_f64(),
        elapsed.as_secs_f64() * 1e6 / f64::from(count),
        (cpu_time() - before).as_secs_f64() * 1e6 / f64::from(count)
    );
    let mut times = Vec::new();
    for job in count + 1..count + 200 {
        let begun = Instant::now();
        world.launch(world.script(job, "exit 0")).await;
        world.exit(job).await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    println!("alone, order to end: p50 {:?}, p99 {:?}", times[times.len() / 2], times[times.len() * 99 / 100]);
    // The floor: the same script started by nobody but the kernel.
    let begun = Instant::now();
    for _ in 0..200 {
        std::process::Command::new("/bin/sh").args(["-c", "exit 0"]).status().unwrap();
    }
    println!("a bare shell: {:?}", begun.elapsed() / 200);
}

/// Of the whole machine, without idling.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let fields: Vec<u64> = stat.lines().next().unwrap().split_whitespace().skip(1).flat_map(str::parse).collect();
    let busy = fields.iter().take(8).sum::<u64>() - fields[3] - fields[4];
    Duration::from_millis(busy * 10)
}
