//! `spur demo`
use super::Call;
pub fn run(_call: &Call) -> Result<i32, String> {
    Ok(0)
}
