//! The process that a daemon would start itself as.
fn main() -> std::process::ExitCode {
    prolog::serve()
}
