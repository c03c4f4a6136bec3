//! From the controller's order to the mover's: what is moved, inside which fences, as whom.
use model::buffer::{Symlinks, TransferKind};
use model::pool::Verify;
use model::staging::{Direction, Home, StageWork, TransferOrder};

use crate::supervisor::Identity;
use crate::sys;

/// An error refuses the work: it can never be done as it stands.
pub fn order(
    work: &StageWork,
    home: &Home,
    node: &str,
    identity: &Identity,
    n_workers: u32,
) -> Result<mover::Order, String> {
    let own_uid = sys::own_uid();
    if own_uid != 0 && own_uid != work.uid {
        return Err(format!("this agent runs as uid {own_uid} and cannot move files of uid {}", work.uid));
    }
    let mut order = mover::Order {
        tag: format!("{}-{}", super::ground::key(home).replace('/', "_"), tag_of(work.direction)),
        verify: match work.verify {
            Verify::None => mover::Verify::None,
            Verify::Size => mover::Verify::Size,
            Verify::Stream => mover::Verify::Stream,
            Verify::Full => mover::Verify::Full,
        },
        n_workers: (n_workers > 0).then_some(n_workers),
        bytes_per_sec: (work.bandwidth_bytes > 0).then_some(work.bandwidth_bytes),
        syncs: work.direction == Direction::Out,
        // Others work on the machine as well.
        is_background: true,
        full_patience_secs: (work.timeout.0 / 1_000_000).max(1),
        work_dir: if work.work_dir.is_empty() { "/".into() } else { work.work_dir.clone() },
        environment: work.environment.clone(),
        identity: Some(mover::Identity { uid: work.uid, gid: work.gid, groups: identity.groups().to_vec() }),
        ..mover::Order::default()
    };
    let own = home.directory(&work.root);
    for transfer in &work.transfers {
        if transfer.kind == TransferKind::Command {
            order.commands.push(transfer.outside.clone());
            continue;
        }
        let fence = fence_of(&mut order, work, home, &own, &transfer.base);
        order.transfers.push(one(work, identity, transfer, fence)?);
    }
    if !order.commands.is_empty() {
        order.environment.push(mark(&work.root, home, node));
        order.environment.extend([
            format!("HOME={}", identity.home),
            format!("USER={}", identity.user),
            format!("LOGNAME={}", identity.user),
            format!("SHELL={}", identity.shell),
        ]);
    }
    Ok(order)
}

/// Marks the processes that commands start, so that none is left behind; by its place, for other clusters on the machine have homes
/// of the same number.
pub fn mark(root: &str, home: &Home, node: &str) -> String {
    format!("SPUR_STAGED={}@{node}", home.directory(root))
}

fn tag_of(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
    }
}

fn fence_of(order: &mut mover::Order, work: &StageWork, home: &Home, own: &str, base: &str) -> u32 {
    if let Some(index) = order.fences.iter().position(|fence| fence.path == base) {
        return index as u32;
    }
    let is_own = base == own;
    let is_filling = work.direction == Direction::In;
    let named = work.environment.iter().filter_map(|entry| entry.split_once('='));
    let named = named.filter(|(_, value)| *value == base);
    order.fences.push(mover::Fence {
        path: base.to_owned(),
        capacity_bytes: (is_own && is_filling && work.capacity_bytes > 0).then_some(work.capacity_bytes),
        // Nobody looks into a job's own buffer before the job starts; a persistent one may be in use.
        is_unread: is_own && is_filling && matches!(home, Home::Job { .. }),
        aliases: named.flat_map(|(name, _)| [format!("${name}"), format!("${{{name}}}")]).collect(),
    });
    (order.fences.len() - 1) as u32
}

fn one(work: &StageWork, identity: &Identity, transfer: &TransferOrder, fence: u32) -> Result<mover::Transfer, String> {
    if !mover::is_contained(&transfer.inside) {
        return Err(format!("{} is not inside the buffer", transfer.inside));
    }
    let outside = outside(work, identity, &transfer.outside)?;
    let inside = mover::Place::inside(fence, transfer.inside.clone());
    let outside = mover::Place::outside(outside);
    let (source, destination, base) = match work.direction {
        Direction::In => (outside, inside, mover::Place::outside(work.work_dir.clone())),
        Direction::Out => (inside, outside, mover::Place::inside(fence, "")),
    };
    let kind = match transfer.kind {
        TransferKind::File => mover::Kind::File,
        TransferKind::Directory => mover::Kind::Directory,
        TransferKind::List => mover::Kind::List,
        TransferKind::Command => return Err("a command is no transfer".into()),
    };
    let links = match transfer.symlinks {
        Symlinks::Preserve => mover::Links::Preserve,
        Symlinks::Follow => mover::Links::Follow,
        Symlinks::Skip => mover::Links::Skip,
        Symlinks::Fail => mover::Links::Fail,
    };
    let list_base = (kind == mover::Kind::List).then_some(base);
    let manifest = match transfer.manifest.as_str() {
        "" => String::new(),
        path => self::outside(work, identity, path)?,
    };
    let (is_optional, with_attributes) = (transfer.is_optional, transfer.with_attributes);
    Ok(mover::Transfer { kind, source, destination, list_base, links, is_optional, manifest, with_attributes })
}

/// Absolute, and not in any pool: nobody reaches a buffer but by its own name.
fn outside(work: &StageWork, identity: &Identity, path: &str) -> Result<String, String> {
    let home = identity.home.trim_end_matches('/');
    let path = match path.strip_prefix("~/").or_else(|| path.strip_prefix("$HOME/")) {
        Some(rest) => format!("{home}/{rest}"),
        None if path == "~" || path == "$HOME" => home.to_owned(),
        None if path.starts_with('/') => path.to_owned(),
        None => format!("{}/{path}", work.work_dir.trim_end_matches('/')),
    };
    if path.split('/').any(|part| part == "..") {
        return Err(format!("{path}: a path with .. is not followed"));
    }
    let plain: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    for root in work.forbidden.iter().chain([&work.root]) {
        let parts: Vec<&str> = root.split('/').filter(|part| !part.is_empty()).collect();
        if !parts.is_empty() && plain.starts_with(&parts) {
            return Err(format!("{path} lies in the burst buffer pool {root}"));
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::field_reassign_with_default)]
    fn outside_paths_are_the_users_and_never_a_pools() {
        let mut identity = Identity::default();
        identity.home = "/home/ann".into();
        let work = StageWork {
            work_dir: "/work/ann".into(),
            root: "/flash/bb".into(),
            forbidden: vec!["/local/bb/".into()],
            ..StageWork::default()
        };
        let check = |path: &str, expected: Result<&str, &str>| match (outside(&work, &identity, path), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(part)) => assert!(found.contains(part), "{found}"),
            (found, _) => panic!("{path}: {found:?}"),
        };
        check("~/data", Ok("/home/ann/data"));
        check("$HOME/data", Ok("/home/ann/data"));
        check("data/in", Ok("/work/ann/data/in"));
        check("/data/in/", Ok("/data/in/"));
        check("/data/../flash/bb", Err(".."));
        check("/flash//bb/jobs/7.0/shared/x", Err("pool /flash/bb"));
        check("/local/./bb/x", Err("pool /local/bb"));
        check("/local/bbq", Ok("/local/bbq"));
    }
}
