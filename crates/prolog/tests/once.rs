//! Real programs, run through the real process.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use prolog::{Ending, Order};

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("prolog-{}-{number}", std::process::id()));
        // A process of an earlier run may have had the same number.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a directory");
        Place(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn script(&self, name: &str, body: &str) -> String {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        path.display().to_string()
    }

    fn run(&self, name: &str, order: &Order) -> Ending {
        let executable = Path::new(env!("CARGO_BIN_EXE_prolog-test"));
        prolog::run_once(executable, &self.path("records"), name, order).expect("it can be started")
    }

    fn order(&self, programs: &[String]) -> Order {
        Order { programs: programs.to_vec(), ..Order::default() }
    }
}

#[test]
fn it_runs_once_and_remembers_how_it_ended() {
    let place = Place::new();
    let log = place.path("log");
    let script = place.script("prolog", &format!("echo $NAME >> {}; echo no good; exit 3", log.display()));
    let order = Order { environment: vec!["NAME=a value".into()], ..place.order(&[script]) };
    let first = place.run("7.0.prolog", &order);
    assert!(first.as_ref().is_err_and(|why| why.ends_with("prolog: exit status 3: no good")), "{first:?}");
    assert_eq!(place.run("7.0.prolog", &order), first);
    assert_eq!(fs::read_to_string(&log).expect("it ran"), "a value\n");
    assert_eq!(prolog::environment(&place.path("records"), "7.0.prolog"), Some(order.environment.clone()));
    prolog::forget(&place.path("records"), "7.0.prolog");
    assert_eq!(prolog::names(&place.path("records")).expect("a list"), Vec::<String>::new());
}

#[test]
fn a_pattern_names_several_and_the_first_failure_is_the_last_that_runs() {
    let place = Place::new();
    let log = place.path("log");
    for (name, code) in [("b", 0), ("a", 0), ("c", 1), ("d", 0)] {
        place.script(&format!("part-{name}"), &format!("echo {name} >> {}; exit {code}", log.display()));
    }
    let order = place.order(&[place.path("part-*").display().to_string()]);
    assert!(place.run("x", &order).is_err());
    assert_eq!(fs::read_to_string(&log).expect("they ran"), "a\nb\nc\n");
    assert_eq!(place.run("nothing", &place.order(&[place.path("none-*").display().to_string()])), Ok(()));
    assert!(place.run("missing", &place.order(&["/no/such/program".into()])).is_err());
}

#[test]
fn one_that_takes_too_long_is_ended_with_its_children() {
    let place = Place::new();
    let script = place.script("slow", "sleep 60 & wait");
    let order = Order { timeout: Some(Duration::from_millis(200)), ..place.order(&[script]) };
    let ending = place.run("slow", &order);
    assert!(ending.as_ref().is_err_and(|why| why.contains("too long")), "{ending:?}");
}

#[test]
fn what_it_leaves_behind_is_waited_for_while_it_holds_the_output() {
    let place = Place::new();
    let (gate, done) = (place.path("gate"), place.path("done"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).expect("a pipe");
    let work = format!("(read line < {}; echo over > {}) &", gate.display(), done.display());
    let script = place.script("epilog", &work);
    let order = place.order(&[script]);
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| place.run("epilog", &order));
        // Opens when somebody reads, so the program itself may have ended by then.
        fs::write(&gate, "go\n").expect("somebody reads");
        assert_eq!(ending.join().expect("no panic"), Ok(()));
    });
    assert_eq!(fs::read_to_string(done).expect("it was waited for"), "over\n");
}

#[test]
fn what_it_leaves_behind_is_ended_when_the_time_is_up() {
    let place = Place::new();
    let pid = place.path("pid");
    let script = place.script("epilog", &format!("sleep 1000 & echo $! > {}", pid.display()));
    let order = Order { timeout: Some(Duration::from_secs(5)), ..place.order(&[script]) };
    assert_eq!(place.run("epilog", &order), Ok(()), "the program itself was in time");
    let pid: i32 = fs::read_to_string(pid).expect("a pid").trim().parse().expect("a number");
    let status = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_gone = || status().is_empty() || status().contains(") Z ");
    assert!((0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_gone()
    }));
}

#[test]
fn a_daemon_with_an_output_of_its_own_is_not_waited_for() {
    let place = Place::new();
    let pid = place.path("pid");
    let script = place.script("daemon", &format!("sleep 60 > /dev/null 2>&1 & echo $! > {}", pid.display()));
    assert_eq!(place.run("daemon", &place.order(&[script])), Ok(()));
    let pid: i32 = fs::read_to_string(pid).expect("a pid").trim().parse().expect("a number");
    let process = rustix::process::Pid::from_raw(pid).expect("a pid");
    rustix::process::kill_process(process, rustix::process::Signal::KILL).expect("it lives");
}

#[test]
fn many_that_come_at_once_find_one_run() {
    let place = Place::new();
    let log = place.path("log");
    let script = place.script("once", &format!("echo one >> {}; sleep 0.2", log.display()));
    let order = place.order(&[script]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(place.run("same", &order), Ok(())));
        }
    });
    assert_eq!(fs::read_to_string(&log).expect("it ran"), "one\n");
}

#[test]
fn one_that_was_interrupted_is_not_run_again() {
    let place = Place::new();
    let log = place.path("log");
    let script = place.script("long", &format!("echo one >> {}; exec sleep 60", log.display()));
    let order = place.order(&[script]);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| place.run("long", &order));
        while fs::read_to_string(&log).is_ok_and(|text| text.is_empty()) || !log.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        prolog::end_all(&place.path("records")).expect("a list");
        assert!(run.join().expect("no panic").is_err_and(|why| why.contains("interrupted")));
    });
    assert!(place.run("long", &order).is_err());
    assert_eq!(fs::read_to_string(&log).expect("it ran"), "one\n");
}
