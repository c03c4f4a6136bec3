//! Compiles the wire contract without an installed `protoc`.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../../proto/spur.proto");
    let descriptors = protox::compile(["spur.proto"], ["../../proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
