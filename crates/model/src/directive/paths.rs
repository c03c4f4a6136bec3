//! Paths in directives: those inside a buffer begin with a buffer's variable or are relative; all others are outside.
use crate::buffer::BufferRequest;
use crate::staging::Access;

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

/// Refuses what can never be a path outside all buffers.
pub(super) fn check_outside(path: &str, roots: &[&str]) -> Result<(), String> {
    sane(path)?;
    if let Some((variable, _)) = variable(path)
        && variable != "HOME"
    {
        return Err(format!("${variable} is not outside the buffers; of variables only $HOME is known here"));
    }
    let is_below = |root: &&&str| {
        let fixed = root.split("%n").next().unwrap_or(root).trim_end_matches('/');
        let has_node = root.contains("%n");
        !fixed.is_empty()
            && path.strip_prefix(fixed).is_some_and(|rest| has_node || rest.is_empty() || rest.starts_with('/'))
    };
    match roots.iter().find(is_below) {
        Some(root) => Err(format!("lies in the pool at {root}: paths into buffers begin with a buffer's variable")),
        None => Ok(()),
    }
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
