//! `sacct`: what became of jobs and steps.

use model::Timestamp;
use model::accounts::Accounts;
use model::config::Config;
use model::history::{HistoryPage, RunHistory};

use crate::output::print;
use crate::trouble::Trouble;
use crate::viewer::Viewer;
use crate::zone::Clock;

mod content;
mod fields;
mod help;
mod json;
mod layout;
mod options;
mod row;
pub mod seff;
mod units;
mod usage;

pub use fields::FIELDS;
pub use help::HELP;
pub use options::{FLAGS, Options, choice, parse};

const VIEWER: Viewer = Viewer { program: "sacct", call: "sacct: error:" };

pub fn run(arguments: &[String]) -> i32 {
    let now = Timestamp::from_secs(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    );
    let asked = parse(arguments, &|name| std::env::var(name).ok(), &Clock::local(None, now));
    VIEWER.run(asked, |options| &options.complaints, |_| false, show)
}

async fn show(options: &Options) -> Result<i32, Trouble> {
    let Some((_, mut controller)) = VIEWER.connect(options.verbose, &options.clusters).await? else {
        return Ok(1);
    };
    if options.verbose {
        eprintln!("sacct: accounting_storage/slurmdbd: init: Accounting storage SLURMDBD plugin loaded");
    }
    let config = controller.configuration().await?.config;
    if !config.accounting.records {
        eprintln!("Slurm accounting storage is disabled");
        return Ok(1);
    }
    let accounts = match options.names_associations() {
        true => controller.accounts().await?,
        false => Accounts::default(),
    };
    if let Some(unknown) = options.query.qos.iter().find(|name| !accounts.qos.contains_key(*name)) {
        let known: Vec<&str> = accounts.qos.keys().map(String::as_str).collect();
        eprintln!("sacct: error: You gave a bad qos '{unknown}'. Valid QOS's are {}", known.join(","));
        eprintln!("sacct: fatal: problem processing qos list");
        return Ok(1);
    }
    let mut pages = controller.history(&options.query).await?;
    let mut printer = Printer::new(options, &config, &accounts);
    while let Some(page) = pages.next().await? {
        if !printer.page(&page) {
            return Ok(0);
        }
    }
    printer.finish();
    Ok(0)
}

/// Prints pages as they come: nobody waits for a million rows to be gathered.
struct Printer<'a> {
    options: &'a Options,
    config: &'a Config,
    accounts: &'a Accounts,
    is_first: bool,
    /// JSON is one document.
    gathered: Vec<RunHistory>,
    now: Timestamp,
}

impl<'a> Printer<'a> {
    fn new(options: &'a Options, config: &'a Config, accounts: &'a Accounts) -> Self {
        Printer { options, config, accounts, is_first: true, gathered: Vec::new(), now: Timestamp::default() }
    }

    /// False when nobody reads any more.
    fn page(&mut self, page: &HistoryPage) -> bool {
        self.now = page.now;
        let is_asked = |run: &&RunHistory| {
            let wanted = &self.options.associations;
            wanted.is_empty() || wanted.contains(&row::association(self.accounts, &run.job))
        };
        if self.options.json {
            self.gathered.extend(page.runs.iter().filter(is_asked).cloned());
            return true;
        }
        let clock = Clock::local(self.options.time_format.as_deref(), page.now);
        let scene = row::Scene { clock: &clock, config: self.config, options: self.options, accounts: self.accounts };
        let mut text = String::new();
        if self.options.contents.is_some() {
            content::write(self.options, &page.runs, &mut text);
        } else {
            if std::mem::take(&mut self.is_first) {
                layout::heading(&self.options.layout, &mut text);
            }
            for run in page.runs.iter().filter(is_asked) {
                row::rows(run, &scene, |row| layout::row(&self.options.layout, row, &mut text));
            }
        }
        print(&text)
    }

    fn finish(self) {
        if !self.options.json {
            return;
        }
        let clock = Clock::local(None, self.now);
        let scene = row::Scene { clock: &clock, config: self.config, options: self.options, accounts: self.accounts };
        let text = json::document(crate::json::settled(self.options.shape, scene.config), &self.gathered, &scene);
        print(&if self.options.yaml { crate::json::yaml(&text) } else { text });
        if crate::output::TalkStream::Stdout.is_terminal() {
            print("\n");
        }
    }
}

#[cfg(test)]
mod tests;
