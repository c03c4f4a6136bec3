//! The tests' mover: a process of its own, as an agent starts it.
fn main() {
    std::process::exit(mover::process::serve(std::env::args_os().skip(1)))
}
