//! How large this machine is, for nodes that do not say.

pub fn n_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// The memory of this machine; 1024 where the kernel does not tell.
pub fn memory_mb() -> u64 {
    std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text)).unwrap_or(1024)
}

fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some((kilobytes / 1024).max(1))
}
