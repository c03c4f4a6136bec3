//! `sacctmgr modify job`: what is said of jobs in history afterwards.
use model::history::{AmendRequest, Amendment, HistoryQuery, RUNS_MOST, RunHistory, RunName};
use model::when::{self, Lean};
use model::{ExitStatus, Timestamp};
use wire::{CallError, Controller};

use super::Options;
use super::agree::agrees;
use super::words::unquoted;
use crate::output::print;
use crate::trouble::Trouble;
use crate::users::uid_of;
use crate::zone::Clock;
use crate::{job_ids, sacct};

/// Which jobs, and what is to be said of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    query: HistoryQuery,
    clusters: Vec<String>,
    amendment: Amendment,
    has_conditions: bool,
}

pub async fn modify(
    controller: &mut Controller,
    cluster: &str,
    words: &[String],
    options: &Options,
) -> Result<i32, Trouble> {
    let now = controller.configuration().await?.now;
    let clock = Clock::local(std::env::var("SLURM_TIME_FORMAT").ok().as_deref(), now);
    let wish = match read(words, &clock) {
        Ok(wish) => wish,
        Err(text) => {
            eprint!("{text}");
            return Ok(1);
        }
    };
    let sure = "You didn't set any conditions with 'WHERE'.\nAre you sure you want to continue?";
    if !wish.has_conditions && !options.is_immediate && !agrees(sure) {
        print("Aborted\n");
        return Ok(0);
    }
    let is_here = |name: &String| name.eq_ignore_ascii_case(cluster);
    let runs = match wish.clusters.is_empty() || wish.clusters.iter().any(is_here) {
        true => matching(controller, &wish.query).await?,
        false => Vec::new(),
    };
    if runs.is_empty() {
        print(" Nothing modified\n");
        return Ok(1);
    }
    let mut told = " Modified jobs...\n".to_string();
    for run in &runs {
        told.push_str(&format!("  {} submitted at {}\n", run.job.job, clock.show(run.job.submitted)));
    }
    let tell = || {
        if !options.is_quiet {
            print(&told);
        }
    };
    if !options.is_immediate {
        tell();
        if !agrees("Would you like to commit changes?") {
            print(" Changes Discarded\n");
            return Ok(0);
        }
    }
    let names: Vec<RunName> = runs.iter().map(|run| run.job.run_name()).collect();
    for part in names.chunks(RUNS_MOST) {
        let request = AmendRequest { runs: part.to_vec(), amendment: wish.amendment.clone() };
        match controller.amend_history(&request).await {
            Ok(()) => (),
            Err(CallError::Refused(reject)) => {
                eprintln!(" Error with request: {reject}");
                return Ok(1);
            }
            Err(other) => return Err(other.into()),
        }
    }
    if options.is_immediate {
        tell();
    }
    Ok(0)
}

async fn matching(controller: &mut Controller, query: &HistoryQuery) -> Result<Vec<RunHistory>, Trouble> {
    let mut pages = controller.history(query).await?;
    let mut runs = Vec::new();
    while let Some(page) = pages.next().await? {
        runs.extend(page.runs);
    }
    Ok(runs)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Conditions,
    Values,
}

/// Conditions until `set`, values from then on; `where` leads back. The error is what is said of the words.
pub fn read(words: &[String], clock: &Clock) -> Result<Wish, String> {
    let mut wish = Wish::default();
    let mut part = Part::Conditions;
    let mut has_values = false;
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word.as_str(), ""));
        let is_key_only = !word.contains('=');
        let key = key.to_lowercase();
        match (key.as_str(), part) {
            ("set", _) if is_key_only => part = Part::Values,
            ("where", _) if is_key_only => part = Part::Conditions,
            (_, Part::Conditions) => condition(&mut wish, &key, word, unquoted(value), clock)?,
            (_, Part::Values) if is_key_only => {
                return Err(format!(" Bad format on {word}: End your option with an '=' sign\n"));
            }
            (_, Part::Values) => {
                set(&mut wish.amendment, &key, word, unquoted(value))?;
                has_values = true;
            }
        }
    }
    if has_values { Ok(wish) } else { Err(" You didn't give me anything to set\n".into()) }
}

fn begins(key: &str, of: &str, least: usize) -> bool {
    key.len() >= least && of.starts_with(key)
}

fn condition(wish: &mut Wish, key: &str, word: &str, value: &str, clock: &Clock) -> Result<(), String> {
    let is = |of: &str| begins(key, of, 1);
    let names = || value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(String::from);
    let moment = || {
        let found = when::parse(value, clock.now().secs() as i64, clock, Lean::Past);
        let found = found.map(|secs| Timestamp::from_secs(secs.max(0) as u64));
        found.map(Some).ok_or_else(|| format!("sacctmgr: error: Invalid time specification (pos=0): {value}\n"))
    };
    let query = &mut wish.query;
    match () {
        () if is("accounts") || is("accts") => query.accounts.extend(names()),
        () if is("cluster") => {
            wish.clusters.extend(names());
            // As in Slurm, that alone is no condition.
            return Ok(());
        }
        () if is("jobid") => {
            let ids = job_ids::split_list(value);
            if ids.is_empty() {
                return Err(format!("Invalid job id(s) {value} specified\n"));
            }
            for id in ids {
                let choice = sacct::choice(id);
                query.jobs.push(choice.ok_or_else(|| format!("sacctmgr: fatal: Bad job/step specified: {id}\n"))?);
            }
        }
        () if is("endtime") => {
            query.before = moment()?;
            return Ok(());
        }
        () if is("starttime") => {
            query.after = moment()?;
            return Ok(());
        }
        () if is("wckeys") => query.wckeys.extend(names()),
        () if is("users") => {
            for name in names() {
                query.uids.push(uid_of(&name).ok_or_else(|| format!("sacctmgr: error: Invalid user id: {name}\n"))?);
            }
        }
        () => return Err(format!(" Unknown condition: {word}\n Use keyword 'set' to modify value\n")),
    }
    wish.has_conditions = true;
    Ok(())
}

fn set(amendment: &mut Amendment, key: &str, word: &str, value: &str) -> Result<(), String> {
    let is = |of: &str, least: usize| begins(key, of, least);
    let text = || Some(value.to_string());
    match () {
        () if is("derivedexitcode", 12) || is("derivedec", 9) => {
            let bad = |_| format!("sacctmgr: error: Invalid value for DerivedExitCode ({value})\n");
            // What wait(2) gives, as Slurm has it.
            let status: u32 = value.parse().map_err(bad)?;
            amendment.derived_exit = Some(ExitStatus::from_wait_status(status as i32));
        }
        () if is("comment", 7) || is("derivedexitstring", 12) || is("derivedes", 9) => amendment.comment = text(),
        () if is("admincomment", 12) => amendment.admin_comment = text(),
        () if is("systemcomment", 13) => amendment.system_comment = text(),
        () if is("newwckey", 1) => amendment.wckey = text(),
        () => return Err(format!(" Unknown option: {word}\n Use keyword 'where' to modify condition\n")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Wish, String> {
        let words: Vec<String> = text.split(' ').map(String::from).collect();
        read(&words, &Clock::utc(Timestamp::from_secs(1_000_000)))
    }

    #[test]
    fn conditions_and_values_are_read_as_slurm_reads_them() {
        let wish = words("where jobid=12,14_3 account=a set DerivedEC=256 comment='bad' newwckey=w").unwrap();
        let ids: Vec<u32> = wish.query.jobs.iter().map(|choice| choice.job.0).collect();
        assert_eq!((ids, wish.query.accounts.as_slice()), (vec![12, 14], &["a".to_string()][..]));
        let amendment = Amendment {
            comment: Some("bad".into()),
            wckey: Some("w".into()),
            derived_exit: Some(ExitStatus::exited(1)),
            ..Default::default()
        };
        assert!(wish.has_conditions && wish.amendment == amendment);
        assert!(!words("set AdminComment=x").unwrap().has_conditions);
        // The words may come in either order.
        assert_eq!(words("set Comment=x where jobid=1"), words("jobid=1 set Comment=x"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, wrong) in [
            ("jobid=1", " You didn't give me anything to set\n"),
            ("jobid=x set comment=1", "sacctmgr: fatal: Bad job/step specified: x\n"),
            ("jobid= set comment=1", "Invalid job id(s)  specified\n"),
            ("colour=1 set comment=1", " Unknown condition: colour=1\n Use keyword 'set' to modify value\n"),
            ("jobid=1 set colour=1", " Unknown option: colour=1\n Use keyword 'where' to modify condition\n"),
            ("jobid=1 set comment", " Bad format on comment: End your option with an '=' sign\n"),
            ("jobid=1 set derivedec=-1", "sacctmgr: error: Invalid value for DerivedExitCode (-1)\n"),
        ] {
            assert_eq!(words(text), Err(wrong.to_string()), "{text}");
        }
    }
}
