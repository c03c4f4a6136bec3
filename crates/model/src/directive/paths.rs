//! Paths in directives: those inside a buffer begin with a buffer's variable or are relative; all others are outside.
use super::IsNode;
use crate::buffer::{BufferRequest, Transfer, TransferKind};
use crate::staging::{Access, Direction};

/// What buffers a job can name.
#[derive(Clone, Debug, Default)]
pub struct Room {
    pub has_shared: bool,
    pub has_private: bool,
    pub persistent: Vec<String>,
}

impl Room {
    pub fn of(request: &BufferRequest) -> Room {
        let has = |access| request.spaces.iter().any(|space| space.access == access);
        Room { has_shared: has(Access::Shared), has_private: has(Access::Private), persistent: request.uses.clone() }
    }
}

/// A path in a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Inside<'a> {
    /// None: in the persistent buffer `persistent`.
    pub access: Option<Access>,
    pub persistent: &'a str,
    /// Below the buffer's directory.
    pub path: &'a str,
}

/// Where a path inside a buffer leads.
pub fn inside<'a>(path: &'a str, room: &Room) -> Result<Inside<'a>, String> {
    sane(path)?;
    let shared = Inside { access: Some(Access::Shared), persistent: "", path };
    let private = Inside { access: Some(Access::Private), ..shared.clone() };
    let Some((variable, rest)) = variable(path) else {
        return match path {
            _ if path.starts_with('/') || path.starts_with('~') => {
                Err("not below a buffer: begin with $DW_JOB_STRIPED, $DW_JOB_PRIVATE or no /".into())
            }
            _ if room.has_shared => Ok(shared),
            _ if room.has_private => Ok(private),
            _ => Err("the job has no buffer of its own".into()),
        };
    };
    let rest = match rest.strip_prefix('/') {
        Some(rest) => rest.trim_start_matches('/'),
        None if rest.is_empty() => "",
        None => return Err(format!("a / follows ${variable}")),
    };
    let missing = || format!("the job has no buffer for ${variable}");
    let found = match variable {
        "DW_JOB_STRIPED" | "SPUR_BB_SHARED" if room.has_shared => Inside { path: rest, ..shared },
        "DW_JOB_PRIVATE" | "SPUR_BB_PRIVATE" if room.has_private => Inside { path: rest, ..private },
        "SPUR_BB_PATH" if room.has_shared => Inside { path: rest, ..shared },
        "SPUR_BB_PATH" if room.has_private => Inside { path: rest, ..private },
        _ => {
            let name =
                ["DW_PERSISTENT_STRIPED_", "SPUR_BB_PERSISTENT_"].iter().find_map(|head| variable.strip_prefix(head));
            let name = name.ok_or_else(missing)?;
            if !room.persistent.iter().any(|known| known == name) {
                return Err(missing());
            }
            Inside { access: None, persistent: name, path: rest }
        }
    };
    Ok(found)
}

/// Where a transfer writes, however that is spelled; None where its lines say it one by one, or a command does.
pub(super) fn target<'a>(transfer: &'a Transfer, room: &Room) -> Option<(Option<Inside<'a>>, Vec<&'a str>)> {
    let Transfer { direction, kind, source, destination, .. } = transfer;
    let (place, path) = match direction {
        Direction::In => {
            inside(destination, room).map(|place| (Some(Inside { path: "", ..place.clone() }), place.path)).ok()?
        }
        Direction::Out => (None, destination.as_str()),
    };
    let mut parts = plain(path);
    match kind {
        TransferKind::List | TransferKind::Command => return None,
        TransferKind::File if destination.ends_with('/') || path.is_empty() => {
            parts.extend(source.rsplit('/').next());
        }
        TransferKind::File | TransferKind::Directory => {}
    }
    if path.starts_with('/') {
        parts.insert(0, "/");
    }
    Some((place, parts))
}

/// Refuses what can never be a path outside all buffers.
pub(super) fn check_outside(path: &str, roots: &[&str], is_node: IsNode) -> Result<(), String> {
    sane(path)?;
    if let Some((variable, _)) = variable(path)
        && variable != "HOME"
    {
        return Err(format!("${variable} is not outside the buffers; of variables only $HOME is known here"));
    }
    match roots.iter().find(|root| root_above(path, root, is_node).is_some()) {
        Some(root) => Err(format!("lies in the pool at {root}: paths into buffers begin with a buffer's variable")),
        None => Ok(()),
    }
}

/// The root of the pool that an absolute path lies in, on whichever node.
pub fn root_above(path: &str, root: &str, is_node: IsNode) -> Option<String> {
    let is_same = |part: &str, of_root: &str| match of_root.split_once("%n") {
        None => part == of_root,
        Some((before, after)) => {
            part.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).is_some_and(is_node)
        }
    };
    let (parts, of_root) = (plain(path), plain(root));
    let all_same = parts.iter().zip(&of_root).all(|(part, of_root)| is_same(part, of_root));
    let lies_in_it = path.starts_with('/') && !of_root.is_empty() && parts.len() >= of_root.len() && all_same;
    lies_in_it.then(|| format!("/{}", parts[..of_root.len()].join("/")))
}

/// The names that a path consists of.
fn plain(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

fn sane(path: &str) -> Result<(), String> {
    if path.split('/').any(|part| part == "..") {
        return Err("a path with \"..\" is refused".into());
    }
    match path.contains(char::is_control) {
        true => Err("a path with control characters is refused".into()),
        false => Ok(()),
    }
}

/// `$NAME…` or `${NAME}…`: the name, and what follows it. Names may contain dots and dashes where a buffer's name does.
fn variable(path: &str) -> Option<(&str, &str)> {
    let text = path.strip_prefix('$')?;
    if let Some(text) = text.strip_prefix('{') {
        return text.split_once('}');
    }
    let end = text.find('/').unwrap_or(text.len());
    Some(text.split_at(end))
}
