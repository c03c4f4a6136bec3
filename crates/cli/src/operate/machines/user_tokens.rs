//! `spur token list | revoke USER | rotate [--now]`: who has tokens of `scontrol token`, and what they are worth.
use model::Timestamp;
use model::trust::{TokensRequest, TokensView};

use super::asking;
use crate::getopt::Parsed;

/// None: the words are for join tokens.
pub fn asked(parsed: &Parsed) -> Option<Result<TokensRequest, String>> {
    let words: Vec<&str> = parsed.operands.iter().map(String::as_str).collect();
    Some(match words[..] {
        [] => return None,
        ["list"] => Ok(TokensRequest::List),
        ["revoke", user] => Ok(TokensRequest::Revoke { user: user.into() }),
        ["rotate"] => Ok(TokensRequest::Rotate { at_once: parsed.has("now") }),
        _ => Err("usage: spur token [--controller | --login] | token list | revoke USER | rotate [--now]".into()),
    })
}

pub fn run(parsed: &Parsed, request: &TokensRequest) -> Result<i32, String> {
    let view = asking(parsed, async |mut controller| controller.change_tokens(request).await)?;
    match request {
        TokensRequest::List => {
            crate::output::print(&as_text(&view));
        }
        TokensRequest::Revoke { user } => eprintln!("Tokens that {user} had are worth nothing any more."),
        TokensRequest::Rotate { at_once: true } => eprintln!("Another key signs tokens; no earlier token is believed."),
        TokensRequest::Rotate { at_once: false } => {
            eprintln!(
                "Another key signs tokens; earlier ones are believed until they end, or until `spur token rotate --now`."
            );
        }
    }
    Ok(0)
}

fn as_text(view: &TokensView) -> String {
    let moment = |secs: u64| match secs {
        0 => "-".to_owned(),
        secs => crate::zone::Clock::local(None, Timestamp::from_secs(0)).show(Timestamp::from_secs(secs)),
    };
    let width = view.users.keys().map(|user| user.len()).max().unwrap_or(0).max("USER".len());
    let mut text = format!("{:width$} {:>6} {:19} {:19} {:19}\n", "USER", "ISSUED", "LAST", "UNTIL", "REVOKED");
    for (user, known) in &view.users {
        let [last, until, revoked] = [known.last_issued_secs, known.until_secs, known.revoked_secs].map(moment);
        text.push_str(&format!("{user:width$} {:>6} {last:19} {until:19} {revoked:19}\n", known.n_issued));
    }
    for until in &view.old_keys_until {
        text.push_str(&format!("A key that signs no more is believed until {}.\n", moment(until.secs())));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::trust::UserTokens;

    #[test]
    fn tokens_are_listed_by_user() {
        let known = UserTokens { n_issued: 2, ..UserTokens::default() };
        let view = TokensView { users: [("ada".into(), known)].into(), old_keys_until: Vec::new() };
        let text = as_text(&view);
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("ada       2 - ")), "{text}");
    }
}
