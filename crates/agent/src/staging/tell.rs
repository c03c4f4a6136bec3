//! What was moved to and from a directory, file by file, and what went wrong: told from a mover's journal and status file.
use std::collections::HashMap;
use std::path::PathBuf;

use model::ask::{Answer, MoveError, MovedFile, MovedFiles};
use model::staging::{Home, StageResult};
use wire::peer::Peer;

use super::errand;
use super::record::{Papers, Record};
use super::table::DIRECTIONS;
use crate::supervisor::Identity;
use crate::sys;
use crate::table::Agent;

const FILES_AT_ONCE: usize = 20_000;

/// Blocks.
pub fn moved(agent: &Agent, caller: Peer, home: &Home, from: u64) -> Answer {
    let works = match works(agent, caller, home) {
        Ok(works) => works,
        Err(why) => return Answer::Refused { why },
    };
    let mut told = MovedFiles::default();
    let mut n_seen = 0;
    for (papers, record) in &works {
        let Ok(journal) = papers.old_journal() else { continue };
        let fences = fences(agent, record, home);
        let read = mover::manifest(&journal, |_, place, file| {
            n_seen += 1;
            if n_seen <= from {
                return;
            }
            if told.files.len() >= FILES_AT_ONCE {
                told.next = Some(from + FILES_AT_ONCE as u64);
                return;
            }
            told.files.push(MovedFile {
                direction: record.work.direction,
                path: path_of(&fences, place, &file.name),
                size_bytes: file.version.size_bytes,
                hash: file.hash.map_or_else(String::new, |hash| format!("{hash:032x}")),
            });
        });
        if let Err(error) = read {
            return Answer::Refused { why: format!("cannot read what was moved: {error}") };
        }
    }
    Answer::Moved(told)
}

pub fn errors(agent: &Agent, caller: Peer, home: &Home) -> Answer {
    let works = match works(agent, caller, home) {
        Ok(works) => works,
        Err(why) => return Answer::Refused { why },
    };
    let mut told = Vec::new();
    for (papers, record) in works {
        let direction = record.work.direction;
        let mut add = |text: String, is_warning| told.push(MoveError { direction, text, is_warning });
        match (papers.status(), record.result) {
            (Some(mover::Status { outcome: Some(outcome), .. }), _) => {
                outcome.errors.into_iter().for_each(|text| add(text, false));
                outcome.warnings.into_iter().for_each(|text| add(text, true));
            }
            (_, Some(StageResult::Failed(failure))) => add(failure.why, false),
            (Some(status), _) if !status.snapshot.note.is_empty() => add(status.snapshot.note, false),
            _ => (),
        }
    }
    Answer::MoveErrors(told)
}

/// What this agent did for the home, for those who may know.
fn works(agent: &Agent, caller: Peer, home: &Home) -> Result<Vec<(Papers, Record)>, String> {
    let node = agent.options.node.as_str();
    let mut found = Vec::new();
    for pool in agent.staging.pools.now().all() {
        let papers = DIRECTIONS.map(|way| Papers::new(&pool.root, home, node, way));
        found.extend(papers.into_iter().filter_map(|papers| papers.read().map(|record| (papers, record))));
    }
    let may_know = |record: &Record| [0, sys::own_uid(), record.work.uid].contains(&caller.uid);
    match found.iter().all(|(_, record)| may_know(record)) {
        true => Ok(found),
        false => Err("Access/permission denied".into()),
    }
}

/// By number; where they are.
fn fences(agent: &Agent, record: &Record, home: &Home) -> HashMap<u32, PathBuf> {
    let work = &record.work;
    let identity = Identity::look_up(work.uid, work.gid, &work.user);
    let order = errand::order(work, home, agent.options.node.as_str(), &identity, 1);
    let fences = order.map(|order| order.fences).unwrap_or_default();
    fences.into_iter().enumerate().map(|(number, fence)| (number as u32, PathBuf::from(fence.path))).collect()
}

fn path_of(fences: &HashMap<u32, PathBuf>, place: &mover::Where, name: &[u8]) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut path = place.fence.and_then(|fence| fences.get(&fence).cloned()).unwrap_or_default();
    for part in [&place.anchor[..], &place.below, name] {
        if !part.is_empty() {
            path.push(std::ffi::OsStr::from_bytes(part));
        }
    }
    escaped(path.as_os_str().as_bytes())
}

/// One line, whatever users call their files.
fn escaped(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for each in chunk.valid().chars() {
            match each {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                each if each.is_control() => out.push_str(&format!("\\x{:02x}", each as u32)),
                each => out.push(each),
            }
        }
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_name_is_one_line() {
        assert_eq!(escaped(b"plain \xc3\xa4"), "plain \u{e4}");
        assert_eq!(escaped(b"two\nlines\\ \x1b[31m \xff"), "two\\nlines\\\\ \\x1b[31m \\xff");
    }
}
