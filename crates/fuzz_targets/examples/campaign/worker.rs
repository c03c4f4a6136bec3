//! One target in a process of its own, until its time is over or an input ends it.
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fuzz_targets::InputChanger;

use crate::contents;
use crate::coverage::Reached;
use crate::figures::{Figures, Places};

/// The first argument of a worker.
pub const WORD: &str = "--worker";
/// Longer inputs show what shorter ones show, and take longer.
const NEW_BYTES_MAX: usize = 8 << 10;
const QUEUE_MAX: usize = 4_000;
/// The process may use so much memory, all inputs together.
const MEMORY_BYTES_MAX: u64 = 4 << 30;
/// Between two looks at the clock, and two notes of where to go on.
const NOTE_EVERY: Duration = Duration::from_secs(5);

static LAST: Mutex<String> = Mutex::new(String::new());

pub fn run(name: &str, dir: PathBuf, seconds: u64, first: usize) {
    let target = fuzz_targets::target(name).unwrap_or_else(|| panic!("{name} is no target"));
    let places = Places::new(&dir);
    let until = Instant::now() + Duration::from_secs(seconds);
    let memory = libc::rlimit { rlim_cur: MEMORY_BYTES_MAX, rlim_max: MEMORY_BYTES_MAX };
    // SAFETY: a plain call on a valid value.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &memory) };
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        if let Ok(mut last) = LAST.lock() {
            // What is caught on the way is told with what it led to.
            *last = format!("{last}\n{place}: {:.3000}", panic.payload_as_str().unwrap_or("?"));
        }
    }));
    let now = File::create(places.now()).expect("the directory can be written");
    let queue = places.queue(name);
    std::fs::create_dir_all(&queue).expect("the directory can be written");
    let mut inputs = target.inputs();
    inputs.extend(contents(queue.clone()));
    let (mut reached, mut figures, mut known) = (Reached::new(), Figures::default(), BTreeSet::new());
    let mut number = first;
    let mut noted = Instant::now();
    let mut changed = None;
    // Known inputs first, so that what they reach is no news.
    let n_known = inputs.len();
    while Instant::now() < until {
        let at = figures.executions as usize;
        let input = if at < n_known { inputs[at].clone() } else { InputChanger::of(number).changed(&inputs) };
        let head = [(number as u64).to_le_bytes(), (input.len() as u64).to_le_bytes()].concat();
        drop(now.write_all_at(&[&head, input.as_slice()].concat(), 0));
        if let Ok(mut last) = LAST.lock() {
            last.clear();
        }
        let began = Instant::now();
        let is_fault = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err();
        figures.executions += 1;
        figures.bytes += input.len() as u64;
        figures.slowest_ms = figures.slowest_ms.max(began.elapsed().as_millis() as u64);
        if is_fault {
            let told = LAST.lock().map(|mut last| std::mem::take(&mut *last)).unwrap_or_default();
            let place: String = told.trim().lines().next().unwrap_or_default().chars().take(80).collect();
            if known.insert(place.clone()) {
                figures.faults += 1;
                places.keep_fault(name, &place, &input, &format!("input {number}: {}", told.trim()));
            }
        }
        if reached.is_news() && at >= n_known && input.len() <= NEW_BYTES_MAX && inputs.len() < QUEUE_MAX {
            figures.new_inputs += 1;
            drop(std::fs::write(queue.join(format!("{number:012}")), &input));
            changed = Some(input.clone());
        }
        if let Some(input) = changed.take() {
            inputs.push(input);
        }
        if at >= n_known {
            number += 1;
        }
        if noted.elapsed() > NOTE_EVERY {
            noted = Instant::now();
            places.go_on_at(name, number);
        }
    }
    figures.reached = reached.n_places;
    places.go_on_at(name, number);
    places.leave_figures(&figures);
}
