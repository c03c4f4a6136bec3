//! `spur topo`: the network as a picture, and what the picker would do on it.
mod place;

use super::Call;

pub fn run(call: &Call) -> Result<i32, String> {
    match call.arguments.split_first() {
        Some((verb, rest)) if verb == "place" => place::run(rest),
        _ => Err("usage: spur topo place --config FILE [--free LIST] -N n [--segment s], or --instances".into()),
    }
}
