//! How the executable is linked. Commands are started hundreds of times a second, so each start counts:
//! at a fixed address it saves the 27,000 relocations of a position-independent executable, about a third of a millisecond, and
//! with the compiler's support library inside it one library less is looked for and mapped. What commands and supervisors run
//! stands side by side (`hot_text.txt`): otherwise it is spread over 40 MB, and every 64 KiB that are touched are a page fault.
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=hot_text.txt");
    println!("cargo:rustc-link-arg-bins=-no-pie");
    let Some(folder) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    side_by_side(&folder);
    // Found before the shared library of that name, and in its place.
    if let (Some(unwinding), Some(support)) = (archive("libgcc_eh.a"), archive("libgcc.a"))
        && std::fs::write(folder.join("libgcc_s.so"), format!("INPUT({unwinding} {support})\n")).is_ok()
    {
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
}

/// Tells the linker what belongs together. A name that no longer exists is passed over; a linker that knows no such scripts
/// (mold) is left alone.
fn side_by_side(folder: &Path) {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if !is("PROFILE", "release") || !is("CARGO_CFG_TARGET_OS", "linux") || flags.contains("mold") {
        return;
    }
    let Ok(names) = std::fs::read_to_string("hot_text.txt") else { return };
    let names = names.lines().filter(|line| !line.starts_with('#'));
    let sections: String = names.map(|name| format!("*(.text.{name})\n")).collect();
    let script = folder.join("hot_text.ld");
    if std::fs::write(&script, format!("SECTIONS {{ .hot_text : {{\n{sections}}} }} INSERT BEFORE .text;\n")).is_ok() {
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}

/// Where the C compiler has this archive, if it has it.
fn archive(name: &str) -> Option<String> {
    let compiler = std::env::var("CC").unwrap_or("cc".into());
    let told = Command::new(compiler).arg(format!("-print-file-name={name}")).output().ok()?;
    let path = String::from_utf8(told.stdout).ok()?.trim().to_string();
    Path::new(&path).is_absolute().then_some(path).filter(|path| Path::new(path).exists())
}
