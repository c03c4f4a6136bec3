//! `sinfo`: partitions and nodes.
use std::time::Duration;

use model::config::Config;
use model::request::NodeView;
use model::{Partition, Reject};
use wire::CallError;

use crate::json;
use crate::output::print;
use crate::render::{Format, all_letters, known_sort, parse_letters, parse_names, sort_rows};
use crate::trouble::Trouble;
use crate::users::{self, Names};
use crate::viewer::{Shown, Viewer};
use crate::zone::Clock;

mod columns;
mod group;
mod help;
mod options;
pub mod reservations;

pub use crate::viewer::Asked;
pub use columns::{COLUMNS, Nodes};
pub use group::{Gather, Group, Scene};
pub use help::HELP;
pub use options::{FLAGS, Options, parse};

const VIEWER: Viewer = Viewer { program: "sinfo", call: "slurm_load_partitions:" };

pub fn run(arguments: &[String]) -> i32 {
    let asked = parse(arguments, &|name| std::env::var(name).ok());
    VIEWER.run(asked, |options| &options.complaints, |options| options.iterate_secs.is_some(), show)
}

async fn show(options: &Options) -> Result<i32, Trouble> {
    print(&options.listing);
    let Some((_, mut controller)) = VIEWER.connect(!options.listing.is_empty(), &options.clusters).await? else {
        return Ok(1);
    };
    loop {
        let configuration = controller.configuration().await?;
        if configuration.config.hides_partitions() {
            return Err(Trouble::Call(Reject::NotPermitted.to_string()));
        }
        let nodes = match controller.nodes().await {
            Err(CallError::Refused(Reject::NotPermitted)) => {
                eprintln!("slurm_load_node: {}", Reject::NotPermitted);
                return Ok(1);
            }
            other => other?,
        };
        let clock = Clock::local(options.time_format.as_deref(), configuration.now);
        if options.reservations {
            let reservations = controller.reservations().await?;
            print(&reservations::table(&reservations, &clock, options.heading));
            return Ok(0);
        }
        let all = options.all || users::sees_hidden(&configuration.config);
        let options = &Options { all, ..options.clone() };
        if let Some(code) = render(options, &nodes, &configuration.config, &clock).put_out() {
            return Ok(code);
        }
        let Some(secs) = options.iterate_secs else { return Ok(0) };
        if !print("\n") {
            return Ok(0);
        }
        tokio::time::sleep(Duration::from_secs(secs)).await;
    }
}

/// Everything `sinfo` prints for one answer of the controller.
pub fn render(options: &Options, nodes: &[NodeView], config: &Config, clock: &Clock) -> Shown {
    let mut shown = Shown::default();
    let partitions = partitions(options, nodes, config);
    let shape = json::settled(options.shape, config);
    if options.json && !shape.is_newer() {
        let named =
            |node: &&NodeView| partitions.iter().any(|(.., own)| own.iter().any(|one| one.node.name == node.node.name));
        shown.text = json::nodes(shape, "sinfo", &nodes.iter().filter(named).collect::<Vec<_>>(), config);
        if options.yaml {
            shown.text = json::yaml(&shown.text);
        }
        return shown;
    }
    let names = Names::default();
    let scene = Scene { clock, config, names: &names, converts: options.converts };
    let (format, unknown) = format(options, &partitions);
    let complaint = |word: String| match &options.names {
        Some(_) => format!("sinfo: error: Invalid job format specification: {word}"),
        None => format!("Invalid node format specification: {word}"),
    };
    shown.complaints.extend(unknown.into_iter().map(complaint));
    let how = match (options.by_node, options.exact) {
        (true, _) => Gather::Not,
        (false, true) => Gather::Exactly,
        (false, false) => Gather::Alike,
    };
    let with_empty = !options.by_node && !options.reasons;
    let mut groups = group::gather(&format, how, &partitions, with_empty, &scene);
    let sort = options.sort.as_deref().unwrap_or(if options.by_node { "N,#P" } else { "#P,-t" });
    // What has no order is passed over, as in Slurm.
    sort_rows(
        &known_sort(COLUMNS, &sort.replace("-#P", "#P").replace("#P", &columns::CONFIGURED.to_string())),
        &mut groups,
    );
    if options.json {
        shown.text = json::groups(shape, config, &groups, nodes);
        if options.yaml {
            shown.text = json::yaml(&shown.text);
        }
        return shown;
    }
    if !options.clusters.is_empty() {
        shown.text.push_str(&format!("CLUSTER: {}\n", config.cluster_name));
    }
    if (options.long && !options.summary || options.iterate_secs.is_some()) && options.heading {
        shown.text.push_str(&clock.banner());
        shown.text.push('\n');
    }
    if options.heading {
        format.heading(&mut shown.text);
    }
    let mut scratch = String::new();
    for group in &groups {
        format.row(group, &mut scratch, &mut shown.text);
    }
    shown
}

/// The partitions meant, each with its place and those of its nodes that are meant.
fn partitions<'a>(
    options: &Options,
    nodes: &'a [NodeView],
    config: &'a Config,
) -> Vec<(usize, &'a Partition, Vec<&'a NodeView>)> {
    let by_name: std::collections::HashMap<&str, &NodeView> =
        nodes.iter().map(|node| (node.node.name.as_str(), node)).collect();
    let is_meant = |partition: &Partition| match &options.partitions {
        Some(wanted) => wanted.contains(&partition.name),
        None => options.all || !partition.is_hidden,
    };
    let partitions = config.partitions.iter().enumerate().filter(|(_, partition)| is_meant(partition));
    partitions
        .map(|(place, partition)| {
            let own = partition.nodes.iter().filter_map(|name| by_name.get(name.as_str()).copied());
            (place, partition, own.filter(|node| is_node_meant(options, node)).collect())
        })
        .collect()
}

fn is_node_meant(options: &Options, node: &NodeView) -> bool {
    let state = node.state();
    let has_reason = || node.node.reason.is_some() && (state.drain || state.base == model::node_state::Base::Down);
    options.nodes.as_ref().is_none_or(|names| names.iter().any(|name| name == node.node.name.as_str()))
        && options.states.as_ref().is_none_or(|any| any.iter().any(|all| all.iter().all(|one| one.fits(state))))
        && (!options.dead || state.silent)
        && (!options.responding || !state.silent)
        && (!options.reasons || has_reason())
}

fn format(options: &Options, partitions: &[(usize, &Partition, Vec<&NodeView>)]) -> (Format<Nodes>, Vec<String>) {
    if let Some(names) = &options.names {
        let all = names.trim_end_matches(':').eq_ignore_ascii_case("all");
        return if all { (all_letters(COLUMNS, columns::ALL), Vec::new()) } else { parse_names(COLUMNS, names) };
    }
    if let Some(letters) = &options.letters {
        let all = letters == "%all";
        return if all { (all_letters(COLUMNS, columns::ALL), Vec::new()) } else { parse_letters(COLUMNS, letters) };
    }
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0).max(9);
    let p = longest(&mut partitions.iter().map(|(_, one, _)| one.name.len() + usize::from(one.is_default)));
    let n =
        longest(&mut partitions.iter().flat_map(|(.., nodes)| nodes.iter().map(|node| node.node.name.as_str().len())));
    let text = match options {
        Options { summary: true, .. } => format!("%{p}P %.5a %.10l %.16F %N"),
        Options { by_node: true, long: true, .. } => {
            format!("%{n}N %.6D %.{p}P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E")
        }
        Options { by_node: true, .. } => format!("%{n}N %.6D %.{p}P %6t"),
        Options { reasons: true, long: true, .. } => "%20E %12U %19H %6t %N".to_string(),
        Options { reasons: true, .. } => "%20E %9u %19H %N".to_string(),
        Options { long: true, .. } => format!("%{p}P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"),
        _ => format!("%{p}P %.5a %.10l %.6D %.6t %N"),
    };
    parse_letters(COLUMNS, &text)
}

#[cfg(test)]
mod tests;
