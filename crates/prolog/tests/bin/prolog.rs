//! The process that a daemon would start itself as.
fn main() {
    std::process::exit(prolog::serve())
}
