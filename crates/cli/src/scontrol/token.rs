//! `scontrol token [lifespan=SECONDS] [username=NAME]`: a token for `SLURM_JWT`.
use super::{Reply, asking};

/// Longer than any cluster lives, and short enough to be written in a token.
const FOREVER_SECS: u64 = i32::MAX as u64;

pub fn print(rest: &[String]) -> Reply {
    let (user, lifespan_secs) = match read(rest) {
        Ok(wanted) => wanted,
        Err(why) => return Reply::failed(&why),
    };
    asking("Error fetching token", async |controller, _| {
        let token = controller.user_token(&user, lifespan_secs).await?;
        Ok(Reply::text(format!("SLURM_JWT={token}\n")))
    })
}

/// No name: the caller's own. No lifespan (0): as long as usual.
fn read(words: &[String]) -> Result<(String, u64), String> {
    let (mut user, mut lifespan_secs) = (String::new(), 0);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match (key.to_ascii_lowercase().as_str(), value) {
            ("lifespan", "infinite") => lifespan_secs = FOREVER_SECS,
            ("lifespan", _) => {
                let secs = value.parse().ok().filter(|secs| (1..=FOREVER_SECS).contains(secs));
                lifespan_secs = secs.ok_or(format!("scontrol: error: invalid lifespan: {value}"))?;
            }
            ("username", name) if !name.is_empty() => user = name.to_owned(),
            _ => return Err(format!("scontrol: error: invalid argument for token: {word}")),
        }
    }
    Ok((user, lifespan_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_with_a_name_and_a_life() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(read(&words("")), Ok((String::new(), 0)));
        assert_eq!(read(&words("username=alice LifeSpan=60")), Ok(("alice".into(), 60)));
        assert_eq!(read(&words("lifespan=infinite")), Ok((String::new(), FOREVER_SECS)));
        for wrong in ["lifespan=x", "lifespan=0", "lifespan=", "lifespan=-1", "username=", "alice"] {
            assert!(read(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
