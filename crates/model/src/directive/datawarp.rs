//! Directives of `burst_buffer/datawarp`: sizes, pools and names are ours, all else is the infrastructure's to check.
use super::read::{BAD_SIZE, Line};
use super::{Problem, ProblemKind, collect, whole};
use crate::buffer::{BufferRequest, Creation, Destruction, Space};
use crate::pool::{BurstBufferConfig, Pool};
use crate::size;

/// `--bb`: directives, or the short form.
pub(super) fn option(text: &str, keywords: &[String]) -> Result<Vec<String>, Problem> {
    let text = text.trim();
    if text.starts_with('#') {
        let lines = collect::from_text(text, keywords)?;
        return if lines.is_empty() { Err(whole(text, "no burst buffer directive")) } else { Ok(lines) };
    }
    let (mut capacity, mut swap) = (None, None);
    let (mut access, mut pool, mut kind) = ("", "", "");
    for item in text.split([' ', '\t', ',']).filter(|item| !item.is_empty()) {
        let complain = |why: &str| Err(whole(item, why));
        let Some((key, value)) = item.split_once('=') else { return complain("unknown word") };
        match key.to_ascii_lowercase().as_str() {
            "capacity" => match size::parse_bytes(value, 1) {
                Some(bytes) => capacity = Some(bytes),
                None => return complain(BAD_SIZE),
            },
            "swap" => match swap_gib(value) {
                Some(gib) => swap = Some(gib),
                None => return complain(BAD_SIZE),
            },
            "access" | "access_mode" => access = value,
            "pool" => pool = value,
            "type" => kind = value,
            _ => return complain("unknown word"),
        }
    }
    let with = |line: String, more: &[(&str, &str)]| {
        let more = more.iter().filter(|(_, value)| !value.is_empty());
        more.fold(line, |line, (key, value)| format!("{line} {key}={value}"))
    };
    let swap = swap.map(|gib| with(format!("#DW swap {gib}GiB"), &[("pool", pool)]));
    let capacity = capacity.map(|bytes| {
        let line = format!("#DW jobdw capacity={}", size::show_bytes(bytes));
        with(line, &[("access_mode", access), ("pool", pool), ("type", kind)])
    });
    Ok(swap.into_iter().chain(capacity).collect())
}

/// Whole GiB, with or without the unit.
fn swap_gib(text: &str) -> Option<u64> {
    size::parse_bytes(text, 1 << 30).map(|bytes| bytes.div_ceil(1 << 30))
}

pub(super) fn request(config: &BurstBufferConfig, lines: &[String]) -> Result<BufferRequest, Problem> {
    let mut request = BufferRequest::default();
    for text in lines {
        let line = Line::new(text);
        let Some(name) = line.words.get(1) else { continue };
        match (line.words[0].text, name.text) {
            ("#DW", "jobdw") => {
                let space = space(config, &line, capacity(&line)?)?;
                super::charge(&mut request.spaces, space).ok_or_else(|| line.complain("capacity", BAD_SIZE))?;
            }
            ("#DW", "stage_out") => request.stages_out = true,
            ("#DW", "persistentdw") => request.uses.push(line.name_value()?.to_owned()),
            ("#DW", "swap") => {
                let word = line.words.get(2).ok_or_else(|| line.about(name, BAD_SIZE))?;
                let gib = swap_gib(word.text).ok_or_else(|| line.about(word, BAD_SIZE))?;
                let bytes = gib.checked_mul(1 << 30).ok_or_else(|| line.about(word, BAD_SIZE))?;
                request.swap = Some(Space { bytes, ..space(config, &line, 1)? });
            }
            ("#DW", "create_persistent" | "destroy_persistent") => {
                let why = format!("{} is written with #BB", name.text);
                return Err(Problem { kind: ProblemKind::NotPermitted, ..line.about(name, &why) });
            }
            ("#BB", "create_persistent") => request.creates.push(creation(config, &line)?),
            ("#BB", "destroy_persistent") => {
                let hurry = line.words[2..].iter().any(|word| word.text == "hurry");
                request.destroys.push(Destruction { name: line.name_value()?.to_owned(), hurry });
            }
            // What the infrastructure knows and we do not.
            _ => (),
        }
    }
    let asks_for_something = !request.spaces.is_empty()
        || request.swap.is_some()
        || !request.uses.is_empty()
        || !request.creates.is_empty()
        || !request.destroys.is_empty();
    match asks_for_something {
        true => Ok(request),
        false => Err(whole(&lines[0], "no buffer is asked for: add jobdw, persistentdw or swap")),
    }
}

fn capacity(line: &Line) -> Result<u64, Problem> {
    let text = line.value("capacity").ok_or_else(|| line.complain("capacity", "no capacity="))?;
    match size::parse_amount(text) {
        Some(size::Amount::Nodes(_)) => Err(line.complain("capacity", "the pool is counted in bytes, not in nodes")),
        _ => size::parse_bytes(text, 1).ok_or_else(|| line.complain("capacity", BAD_SIZE)),
    }
}

/// `bytes` in whole granules of the line's pool. While nothing is known of pools, anything may be one.
fn space(config: &BurstBufferConfig, line: &Line, bytes: u64) -> Result<Space, Problem> {
    let named = line.value("pool").filter(|pool| !pool.is_empty());
    let pool: Option<&Pool> = match named {
        Some(name) => config.pool(name),
        None => config.default_pool(),
    };
    if let (Some(name), None, true) = (named, pool, config.is_loaded) {
        return Err(line.complain("pool", &format!("Invalid pool requested ({name})")));
    }
    let bytes = pool.map_or(Some(bytes), |pool| pool.rounded(bytes));
    let bytes = bytes.ok_or_else(|| line.complain("capacity", BAD_SIZE))?;
    let name = pool.map(|pool| pool.name.as_str()).or(named).unwrap_or(&config.default_pool);
    Ok(Space { pool: name.to_owned(), bytes, ..Default::default() })
}

fn creation(config: &BurstBufferConfig, line: &Line) -> Result<Creation, Problem> {
    let name = line.name_value()?.to_owned();
    let Space { pool, bytes, .. } = space(config, line, capacity(line)?)?;
    let access = line.value("access").or(line.value("access_mode")).unwrap_or_default().to_owned();
    let kind = line.value("type").unwrap_or_default().to_owned();
    Ok(Creation { name, pool, bytes, access, kind })
}
