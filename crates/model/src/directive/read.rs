//! From directive lines to a request, with every word accounted for.
use super::paths::{self, Room};
use super::symbols;
use super::{IsNode, Problem, ProblemKind, whole};
use crate::buffer::{BufferRequest, Creation, Destruction, Space, Symlinks, Transfer, TransferKind, When};
use crate::pool::{BurstBufferConfig, Pool, PoolKind};
use crate::size;
use crate::staging::{Access, Direction};

/// What a number without a unit counts in.
pub(super) const BARE_BYTES: u64 = 1 << 30;
pub(super) const BAD_SIZE: &str = "not a size: expected digits and K, M, G, T, P, KB, KiB, …, and more than zero";
pub(super) const NO_SWAP: &str = "swap is not available with burst_buffer/native";
const NAME_RULE: &str = "a buffer's name is a letter, and up to 63 letters, digits, dots, dashes and underscores";

pub(super) fn request(config: &BurstBufferConfig, lines: &[String], is_node: IsNode) -> Result<BufferRequest, Problem> {
    let mut request = BufferRequest::default();
    let mut transfers: Vec<Line> = Vec::new();
    for text in lines {
        let line = Line::new(text);
        let Some(name) = line.words.get(1) else { return Err(whole(text, "a directive says what it wants")) };
        match (line.words[0].text, name.text) {
            ("#DW", "jobdw") => job_space(config, &line, &mut request)?,
            ("#DW", "stage_in" | "stage_out") => transfers.push(line),
            ("#DW", "persistentdw") => request.uses.push(line.name()?.to_owned()),
            ("#DW", "swap") => return Err(line.about(name, NO_SWAP)),
            ("#DW", "create_persistent" | "destroy_persistent") => {
                let why = format!("{} is written with #BB", name.text);
                return Err(Problem { kind: ProblemKind::NotPermitted, ..line.about(name, &why) });
            }
            ("#BB", "create_persistent") => request.creates.push(creation(config, &line)?),
            ("#BB", "destroy_persistent") => {
                let hurry = line.words[2..].iter().any(|word| word.text == "hurry");
                line.only(&["name"], &["hurry"])?;
                request.destroys.push(Destruction { name: line.name_value()?.to_owned(), hurry });
            }
            _ => return Err(line.about(name, "unknown directive")),
        }
    }
    let room = Room::of(&request);
    for line in &transfers {
        let transfer = transfer(config, line, &room, is_node)?;
        let same = |other: &Transfer| {
            let (this, that) = (paths::target(&transfer, &room), paths::target(other, &room));
            other.direction == transfer.direction && this.is_some() && this == that
        };
        if request.transfers.iter().any(same) {
            return Err(line.complain("destination", "two transfers have this destination"));
        }
        request.transfers.push(transfer);
    }
    let has_command = request.transfers.iter().any(|transfer| transfer.kind == TransferKind::Command);
    let asks_for_something = !request.spaces.is_empty()
        || !request.uses.is_empty()
        || !request.creates.is_empty()
        || !request.destroys.is_empty()
        || has_command;
    match asks_for_something {
        true => Ok(request),
        false => Err(whole(&lines[0], "data is staged, but no buffer is asked for: add jobdw or persistentdw")),
    }
}

fn job_space(config: &BurstBufferConfig, line: &Line, request: &mut BufferRequest) -> Result<(), Problem> {
    if line.value("pfs").is_some() {
        return Err(line.complain("pfs", "pfs= belongs to type=cache, which is not available with burst_buffer/native"));
    }
    line.only(&["capacity", "pool", "type", "access_mode", "access"], &[])?;
    scratch_only(line)?;
    let bytes = capacity(line)?;
    for (access, pool) in accesses(config, line)? {
        let bytes = pool.rounded(bytes).ok_or_else(|| line.complain("capacity", BAD_SIZE))?;
        match request.spaces.iter_mut().find(|space| space.access == access) {
            Some(space) if space.pool == pool.name => {
                space.bytes = space.bytes.checked_add(bytes).ok_or_else(|| line.complain("capacity", BAD_SIZE))?;
            }
            Some(space) => {
                let why = format!("the job has its space in pool \"{}\" already", space.pool);
                return Err(line.complain("pool", &why));
            }
            None => request.spaces.push(Space { pool: pool.name.clone(), access, bytes }),
        }
    }
    Ok(())
}

fn scratch_only(line: &Line) -> Result<(), Problem> {
    match line.value("type") {
        None | Some("scratch") => Ok(()),
        Some("cache") => Err(line.complain("type", "type=cache is not available with burst_buffer/native")),
        Some(_) => Err(line.complain("type", "unknown type")),
    }
}

fn capacity(line: &Line) -> Result<u64, Problem> {
    let text = line.value("capacity").ok_or_else(|| line.complain("capacity", "no capacity="))?;
    match size::parse_amount(text) {
        Some(size::Amount::Nodes(_)) => Err(line.complain("capacity", "the pool is counted in bytes, not in nodes")),
        _ => size::parse_bytes(text, BARE_BYTES).ok_or_else(|| line.complain("capacity", BAD_SIZE)),
    }
}

/// What kinds of space the line asks for, each with its pool.
fn accesses<'a>(config: &'a BurstBufferConfig, line: &Line) -> Result<Vec<(Access, &'a Pool)>, Problem> {
    let named = named_pool(config, line)?;
    let key = if line.value("access").is_some() { "access" } else { "access_mode" };
    let wanted: Vec<Access> = match line.value(key) {
        None => vec![match named.or(config.default_pool()) {
            Some(pool) if pool.kind == PoolKind::Node => Access::Private,
            _ => Access::Shared,
        }],
        Some(text) => {
            let access = |word: &str| match word {
                "striped" => Ok(Access::Shared),
                "private" => Ok(Access::Private),
                "ldbalance" => Err(line.complain(key, "ldbalance is not available with burst_buffer/native")),
                _ => Err(line.complain(key, "unknown access mode: striped, private, or both")),
            };
            let mut wanted = text.split(',').map(access).collect::<Result<Vec<_>, _>>()?;
            wanted.dedup();
            wanted
        }
    };
    let is_for = |access: Access, pool: &Pool| match access {
        Access::Shared => pool.kind == PoolKind::Shared,
        Access::Private => pool.kind == PoolKind::Node,
    };
    let mut found = Vec::new();
    for access in &wanted {
        let first = || config.default_pool().into_iter().chain(&config.pools).find(|pool| is_for(*access, pool));
        let pool = match named {
            Some(pool) if is_for(*access, pool) => Some(pool),
            Some(pool) if wanted.len() == 1 => {
                let right = if pool.kind == PoolKind::Node { "private" } else { "striped" };
                return Err(line.complain(key, &format!("pool \"{}\" has only {right} space", pool.name)));
            }
            _ => first(),
        };
        let pool = pool.ok_or_else(|| line.complain(key, "no pool has such space"))?;
        found.push((*access, pool));
    }
    Ok(found)
}

fn named_pool<'a>(config: &'a BurstBufferConfig, line: &Line) -> Result<Option<&'a Pool>, Problem> {
    let Some(name) = line.value("pool") else { return Ok(None) };
    match config.pool(name) {
        Some(pool) => Ok(Some(pool)),
        None => Err(line.complain("pool", &format!("Invalid pool requested ({name})"))),
    }
}

fn creation(config: &BurstBufferConfig, line: &Line) -> Result<Creation, Problem> {
    line.only(&["name", "capacity", "access", "access_mode", "pool", "type"], &[])?;
    scratch_only(line)?;
    let name = line.name_value()?.to_owned();
    let bytes = capacity(line)?;
    let spaces = accesses(config, line)?;
    let [(Access::Shared, pool)] = spaces[..] else {
        return Err(line.complain("pool", "a persistent buffer has striped space"));
    };
    let bytes = pool.rounded(bytes).ok_or_else(|| line.complain("capacity", BAD_SIZE))?;
    Ok(Creation { name, pool: pool.name.clone(), bytes, ..Default::default() })
}

fn transfer(config: &BurstBufferConfig, line: &Line, room: &Room, is_node: IsNode) -> Result<Transfer, Problem> {
    const KEYS: [&str; 8] = ["type", "source", "destination", "optional", "when", "symlinks", "manifest", "xattrs"];
    let direction = if line.words[1].text == "stage_in" { Direction::In } else { Direction::Out };
    if line.value("type") == Some("command") {
        let command = line.value("command").filter(|text| !text.is_empty());
        let source = command.ok_or_else(|| line.complain("command", "no command"))?;
        line.only(&["type", "command", "when"], &[])?;
        let (source, when) = (line.unreplaced(source), when(line, direction)?);
        return Ok(Transfer { direction, kind: TransferKind::Command, source, when, ..Default::default() });
    }
    line.only(&KEYS, &[])?;
    let kind = match line.value("type") {
        Some("file") => TransferKind::File,
        Some("directory") => TransferKind::Directory,
        Some("list") => TransferKind::List,
        Some(_) => return Err(line.complain("type", "unknown type: file, directory or list")),
        None => return Err(line.complain("type", "no type=")),
    };
    let path = |key: &str| match line.value(key).filter(|path| !path.is_empty()) {
        Some(path) => Ok(line.unreplaced(path)),
        None => Err(line.complain(key, &format!("no {key}="))),
    };
    let (source, destination) = (path("source")?, path("destination")?);
    let roots: Vec<&str> = config.pools.iter().map(|pool| pool.root.as_str()).collect();
    let (outside_key, outside, inside_key, inside) = match direction {
        Direction::In => ("source", &source, "destination", &destination),
        Direction::Out => ("destination", &destination, "source", &source),
    };
    paths::check_outside(outside, &roots, is_node).map_err(|why| line.complain(outside_key, &why))?;
    let place = paths::inside(inside, room).map_err(|why| line.complain(inside_key, &why))?;
    let is_private = place.access == Some(Access::Private);
    if is_private && direction == Direction::Out && !destination.contains("%n") && !destination.contains("%t") {
        let why = "every node would write here: add %n (its name) or %t (its number)";
        return Err(line.complain("destination", why));
    }
    if let (Some(manifest), Direction::In) = (line.value("manifest"), direction) {
        paths::check_outside(manifest, &roots, is_node).map_err(|why| line.complain("manifest", &why))?;
    } else if line.value("manifest").is_some() {
        return Err(line.complain("manifest", "only what is staged in is compared with a manifest"));
    }
    Ok(Transfer {
        direction,
        kind,
        source,
        destination,
        when: when(line, direction)?,
        is_optional: yes(line, "optional")?,
        symlinks: match line.value("symlinks") {
            None | Some("preserve") => Symlinks::Preserve,
            Some("follow") => Symlinks::Follow,
            Some("skip") => Symlinks::Skip,
            Some("fail") => Symlinks::Fail,
            Some(_) => return Err(line.complain("symlinks", "unknown: preserve, follow, skip or fail")),
        },
        manifest: line.value("manifest").map(|path| line.unreplaced(path)).unwrap_or_default(),
        with_attributes: yes(line, "xattrs")?,
    })
}

fn when(line: &Line, direction: Direction) -> Result<When, Problem> {
    match (line.value("when"), direction) {
        (None, _) => Ok(When::Always),
        (Some(_), Direction::In) => Err(line.complain("when", "data is staged in before anything can fail")),
        (Some("always"), _) => Ok(When::Always),
        (Some("success"), _) => Ok(When::Success),
        (Some("failure"), _) => Ok(When::Failure),
        (Some(_), _) => Err(line.complain("when", "unknown: always, success or failure")),
    }
}

fn yes(line: &Line, key: &str) -> Result<bool, Problem> {
    match line.value(key) {
        None | Some("no") => Ok(false),
        Some("yes") => Ok(true),
        Some(_) => Err(line.complain(key, "yes or no")),
    }
}

/// One directive, cut into words.
pub(super) struct Line<'a> {
    text: &'a str,
    pub words: Vec<Word<'a>>,
    first: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    at: usize,
}

impl<'a> Line<'a> {
    pub fn new(text: &'a str) -> Self {
        Line::with_keys_from(text, 2)
    }

    /// `first` is the word where keys may begin.
    pub fn with_keys_from(text: &'a str, first: usize) -> Self {
        let mut words = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let blanks = rest.len() - rest.trim_start().len();
            at += blanks;
            let rest = &text[at..];
            // A command is all that is left of the line.
            let end = match rest.starts_with("command=") {
                true => rest.len(),
                false => rest.find(char::is_whitespace).unwrap_or(rest.len()),
            };
            if end == 0 {
                break;
            }
            words.push(Word { text: &rest[..end], at });
            at += end;
        }
        Line { text, words, first }
    }

    pub fn value(&self, key: &str) -> Option<&'a str> {
        let pairs = self.words.iter().skip(self.first).filter_map(|word| word.text.split_once('='));
        pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// `value`, safe from replacement where the line asks for that with `\\`.
    fn unreplaced(&self, value: &str) -> String {
        let Some(mark) = self.text.find("\\\\") else { return value.to_owned() };
        let start = value.as_ptr() as usize - self.text.as_ptr() as usize;
        let split = mark.saturating_sub(start).min(value.len());
        format!("{}{}", &value[..split], symbols::escape(&value[split..]))
    }

    fn name(&self) -> Result<&'a str, Problem> {
        self.only(&["name"], &[])?;
        self.name_value()
    }

    pub fn name_value(&self) -> Result<&'a str, Problem> {
        let name = self.value("name").ok_or_else(|| self.complain("name", "no name="))?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let is_right = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.len() <= 64
            && name.chars().all(is_plain)
            && !name.contains("..");
        if is_right { Ok(name) } else { Err(self.complain("name", NAME_RULE)) }
    }

    /// Every word is one of these, and each key comes once.
    fn only(&self, keys: &[&str], flags: &[&str]) -> Result<(), Problem> {
        for (place, word) in self.words.iter().enumerate().skip(2) {
            let is_known = match word.text.split_once('=') {
                Some((key, _)) => keys.contains(&key),
                None => flags.contains(&word.text),
            };
            if !is_known {
                return Err(self.about(word, "unknown word"));
            }
            let key = |word: &Word<'a>| word.text.split_once('=').map_or(word.text, |(key, _)| key);
            if self.words[2..place].iter().any(|other| key(other) == key(word)) {
                return Err(self.about(word, "given twice"));
            }
        }
        Ok(())
    }

    /// A complaint about the word with this key, or about the directive if it has none.
    pub fn complain(&self, key: &str, why: &str) -> Problem {
        let with_key = |word: &&Word| word.text.split_once('=').is_some_and(|(name, _)| name == key);
        let word = self.words.iter().skip(self.first).find(with_key).or(self.words.get(1));
        self.about(word.unwrap_or(&self.words[0]), why)
    }

    pub fn about(&self, word: &Word, why: &str) -> Problem {
        let marked = word.at..word.at + word.text.len();
        Problem { kind: ProblemKind::Invalid, why: why.into(), line: self.text.into(), word: marked }
    }
}
