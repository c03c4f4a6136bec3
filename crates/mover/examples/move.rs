//! `move [--verify none|size|stream|full] [--workers N] [--fenced] [--journal FILE] SOURCE DESTINATION`: for measuring.
use std::fs::File;
use std::path::Path;

use mover::{Fence, Files, Kind, Order, Place, Stop, Transfer, Verify};

fn main() {
    let mut order = Order::default();
    let mut places = Vec::new();
    let mut journal = None;
    let mut is_fenced = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--verify" => {
                order.verify = match arguments.next().as_deref() {
                    Some("none") => Verify::None,
                    Some("size") => Verify::Size,
                    Some("full") => Verify::Full,
                    _ => Verify::Stream,
                }
            }
            "--workers" => order.n_workers = arguments.next().and_then(|count| count.parse().ok()),
            "--journal" => journal = arguments.next(),
            "--sync" => order.syncs = true,
            "--fenced" => is_fenced = true,
            _ => places.push(std::path::absolute(argument).expect("a path").to_string_lossy().into_owned()),
        }
    }
    let [source, destination] = places.try_into().expect("a source and a destination");
    let is_directory = Path::new(&source).is_dir();
    let mut transfer = Transfer {
        kind: if is_directory { Kind::Directory } else { Kind::File },
        source: Place::outside(source),
        destination: Place::outside(destination.clone()),
        ..Transfer::default()
    };
    if is_fenced {
        std::fs::create_dir_all(&destination).expect("a directory");
        order.fences = vec![Fence { path: destination, is_unread: true, ..Fence::default() }];
        transfer.destination = Place::inside(0, "");
    }
    order.transfers = vec![transfer];
    let temporary = std::env::temp_dir();
    let journal = match journal {
        Some(path) => File::options().read(true).append(true).create(true).open(path).expect("a journal"),
        None => mover::scratch_in(&temporary).expect("a journal"),
    };
    let files =
        Files { journal, status: None, scratch: mover::scratch_in(&temporary).expect("a scratch file"), peer: None };
    let status = mover::run(&order, files, &Stop::default());
    let peak = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim().to_owned();
    println!("{:?} peak {peak}", status.snapshot);
    let outcome = status.outcome.unwrap_or_default();
    if outcome.ending != mover::Ending::Done {
        println!("{}", outcome.text());
        std::process::exit(1);
    }
}
