//! `spur topo`: the network as a picture, and what the picker would do on it.
mod place;
mod scene;
mod svg;
mod text;

use std::path::Path;

use model::config::Sockets;
use model::request::JobFilter;
use serde_json::json;
use wire::{CallError, Controller};

use super::folder::Folder;
use super::{Call, directory, options};
use crate::context::block_on;
use crate::getopt::{Flag, Value, flag};
use scene::Scene;

const FLAGS: &[Flag] = &[
    flag("dir", Some('d'), Value::Required),
    flag("svg", None, Value::Required),
    flag("json", None, Value::None),
    flag("topology", None, Value::Required),
    flag("no-color", None, Value::None),
];

pub fn run(call: &Call) -> Result<i32, String> {
    if let Some((verb, rest)) = call.arguments.split_first()
        && verb == "place"
    {
        return place::run(rest);
    }
    let parsed = options(FLAGS, call.arguments)?;
    let name = parsed.value("topology").unwrap_or_default();
    let scene = look(directory(&parsed).as_deref(), name)?;
    if let Some(file) = parsed.value("svg") {
        std::fs::write(file, svg::draw(&scene)).map_err(|error| format!("cannot write {file}: {error}"))?;
        return Ok(0);
    }
    match parsed.has("json") {
        true => crate::output::print(&format!("{}\n", as_json(&scene))),
        false => {
            let has_colour = crate::output::TalkStream::Stdout.is_terminal() && !parsed.has("no-color");
            match has_colour {
                true => crate::output::draw(&text::draw(&scene, has_colour)),
                false => crate::output::print(&text::draw(&scene, has_colour)),
            }
        }
    };
    Ok(0)
}

/// The cluster of the folder, or the one the commands talk to.
pub(super) fn look(directory: Option<&Path>, name: &str) -> Result<Scene, String> {
    let socket = match (directory, crate::context::cluster()) {
        (None, Ok(cluster)) => cluster.controller_socket,
        _ => {
            let folder = Folder::to_find(directory)?;
            let config = config::load(&folder.conf()).map_err(|error| error.to_string())?;
            config.controller.sockets()
        }
    };
    block_on(ask(socket, name)).map_err(|error| error.to_string())?
}

async fn ask(socket: Sockets, name: &str) -> Result<Result<Scene, String>, CallError> {
    let mut controller = Controller::connect(socket).await?;
    let about = controller.configuration().await?;
    let nodes = controller.nodes().await?;
    let page = controller.all_jobs(&JobFilter::default()).await?;
    Ok(Scene::new(&about.config, &nodes, &page.jobs, page.now, name))
}

fn as_json(scene: &Scene) -> serde_json::Value {
    let units = scene.units.iter().map(|unit| {
        let nodes = unit.cells.iter().map(|cell| {
            json!({ "node": cell.node, "state": cell.state, "job": cell.job.map(|id| id.0), "free": cell.is_free })
        });
        json!({ "name": unit.name, "free": unit.n_free(), "nodes": nodes.collect::<Vec<_>>() })
    });
    let groups = scene.groups.iter().map(|group| {
        let names: Vec<&str> = scene.units[group.units.clone()].iter().map(|unit| unit.name.as_str()).collect();
        json!({ "name": group.name, "level": group.level, "units": names })
    });
    let jobs = scene.jobs.iter().map(
        |job| json!({ "job": job.id.0, "name": job.name, "user": job.user, "nodes": job.nodes, "units": job.n_units }),
    );
    let next =
        scene.next_whole().map(|(unit, secs)| json!({ "unit": unit.name, "nodes": unit.cells.len(), "in_secs": secs }));
    json!({
        "cluster": scene.cluster_name,
        "topology": scene.topology,
        "plugin": scene.kind,
        "nodes": scene.n_nodes(),
        "free": scene.n_free(),
        "fragmentation": scene.fragmentation(),
        "largest_free": scene.largest().map(|unit| json!({ "unit": unit.name, "nodes": unit.n_free() })),
        "next_whole": next,
        "units": units.collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "jobs": jobs.collect::<Vec<_>>(),
    })
}
