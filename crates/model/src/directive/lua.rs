//! Directives of `burst_buffer/lua`: `pool=` and `capacity=` are ours, every other word is the script's.
use super::read::{BAD_SIZE, Line};
use super::{Problem, collect, whole};
use crate::buffer::{BufferRequest, Space};
use crate::pool::BurstBufferConfig;
use crate::size;

/// `--bb`: only directives.
pub(super) fn option(text: &str, keywords: &[String]) -> Result<Vec<String>, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let lines = if text.starts_with('#') { collect::from_text(text, keywords)? } else { Vec::new() };
    match lines.is_empty() {
        true => Err(whole(text, &format!("--bb holds directives that begin with {}", keywords.join(" or ")))),
        false => Ok(lines),
    }
}

pub(super) fn request(config: &BurstBufferConfig, lines: &[String]) -> Result<BufferRequest, Problem> {
    let mut request = BufferRequest::default();
    for text in lines {
        // A directive has no name of its own here, so its first word may be a key.
        let line = Line::with_keys_from(text, 1);
        let pool = line.value("pool").filter(|pool| !pool.is_empty());
        if let Some(name) = pool.filter(|_| config.is_loaded)
            && config.pool(name).is_none()
        {
            return Err(line.complain("pool", &format!("Invalid pool requested ({name})")));
        }
        let Some(capacity) = line.value("capacity") else {
            continue;
        };
        let Some(bytes) = size::parse_bytes(capacity, 1) else {
            let zero = size::is_zero(capacity);
            let why = if zero { "Invalid capacity (must be greater than 0) in burst buffer line" } else { BAD_SIZE };
            return Err(line.complain("capacity", why));
        };
        let Some(name) = pool else {
            return Err(line.complain("capacity", "Must specify pool with capacity for burst buffer"));
        };
        let bytes = config.pool(name).map_or(Some(bytes), |pool| pool.rounded(bytes));
        let bytes = bytes.ok_or_else(|| line.complain("capacity", BAD_SIZE))?;
        super::charge(&mut request.spaces, Space { pool: name.to_owned(), bytes, ..Default::default() })
            .ok_or_else(|| line.complain("capacity", BAD_SIZE))?;
    }
    // The script decides what comes back; nobody else can tell.
    request.stages_out = true;
    Ok(request)
}
