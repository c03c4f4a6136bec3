//! `campaign TARGET SECONDS [FIRST]`: changed inputs, one after the other; tells each place that panicked once, with its input's number.
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

static LAST: Mutex<String> = Mutex::new(String::new());

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, first @ ..] = &arguments[..] else { panic!("campaign TARGET SECONDS [FIRST]") };
    let target = fuzz_targets::target(name).unwrap_or_else(|| panic!("{name} is no target"));
    let until = Instant::now() + Duration::from_secs(seconds.parse().expect("a number of seconds"));
    let first: usize = first.first().map_or(1, |word| word.parse().expect("a number"));
    std::panic::set_hook(Box::new(|panic| {
        let mut last = LAST.lock().expect("nobody panics with it");
        // What is caught on the way is told with what it led to.
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        *last = format!("{last}\n{place}: {:.3000}", panic.payload_as_str().unwrap_or("?"));
    }));
    let seeds = (target.seeds)();
    let mut faults: BTreeMap<String, usize> = BTreeMap::new();
    let mut number = first;
    while Instant::now() < until {
        let input = fuzz_targets::InputChanger::of(number).changed(&seeds);
        let began = Instant::now();
        LAST.lock().expect("nobody panics with it").clear();
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
            let told = LAST.lock().expect("nobody panics with it").clone();
            let place = told.trim().lines().next().unwrap_or_default().chars().take(120).collect::<String>();
            let n_seen = faults.entry(place).or_default();
            *n_seen += 1;
            if *n_seen == 1 {
                println!("input {number}:{told}\n");
            }
        }
        if began.elapsed() > Duration::from_millis(500) {
            println!("input {number}: {:?} for {} bytes", began.elapsed(), input.len());
        }
        number += 1;
    }
    println!("{name}: {} inputs, {} places that panicked: {faults:#?}", number - first, faults.len());
}
