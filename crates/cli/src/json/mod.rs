//! Slurm's JSON: jobs, nodes and partitions in the shape its clients parse.
use model::Partition;
use model::config::Config;
use model::request::NodeView;

use crate::job_view::JobView;
use crate::node_view::Memberships;
use crate::users::Names;

mod job;
mod node;
mod partition;
mod reservation;
pub mod shape;
mod sinfo;
mod statistics;
pub mod step;
mod write;
mod yaml;

pub use reservation::{licenses, reservations};
pub use shape::{Shape, Wish};
pub use sinfo::groups;
pub use statistics::statistics;
pub use write::Json;
pub use yaml::of_json as yaml;

use crate::getopt::Parsed;
use crate::version;

/// What `--json` or `--yaml` asks for; the error is what follows `fatal: `.
pub fn wish(parsed: &Parsed) -> Result<Wish, String> {
    shape::parse(parsed.value("json").or(parsed.value("yaml")))
}

/// As `wish`, for a program that tells the rest itself; the error is the exit code where nothing more is to be done.
pub fn begin(program: &str, parsed: &Parsed) -> Result<Option<Shape>, i32> {
    match wish(parsed) {
        Ok(Wish::Document(shape)) => Ok(shape),
        Ok(Wish::List) => {
            crate::output::print(&shape::list());
            Err(0)
        }
        Err(why) => {
            eprintln!("{program}: fatal: {why}");
            Err(1)
        }
    }
}

/// As `wish`, where a list was asked for elsewhere.
pub fn chosen(parsed: &Parsed) -> Result<Option<Shape>, Vec<String>> {
    match wish(parsed) {
        Ok(Wish::Document(shape)) => Ok(shape),
        Ok(Wish::List) => Ok(None),
        Err(why) => Err(vec![format!("fatal: {why}")]),
    }
}

/// The shape that was asked for, or else the cluster's.
pub fn settled(asked: Option<Shape>, config: &Config) -> Shape {
    asked.unwrap_or(config.controller.data_parser)
}

/// What `--json` prints for jobs.
pub fn jobs(shape: Shape, program: &str, cluster: &str, rows: &[JobView]) -> String {
    envelope(shape, program, cluster, |json| {
        json.list_field("jobs", |json| rows.iter().for_each(|row| json.object(|json| job::write(row, json))));
        if shape.is_newer() {
            json.number("last_backfill", rows.iter().map(|row| row.last_evaluated().secs() as i64).max());
            asked_now(json);
        }
    })
}

/// What `--json` prints for nodes.
pub fn nodes(shape: Shape, program: &str, nodes: &[&NodeView], config: &Config) -> String {
    let names = Names::default();
    let network = crate::network::of(config, nodes.iter().copied());
    let context = node::Context { config, memberships: Memberships::of(config), network: &network, names: &names };
    dated(shape, program, &config.cluster_name, "nodes", |json| {
        nodes.iter().for_each(|view| json.object(|json| node::write(view, &context, json)));
    })
}

/// What `--json` prints for partitions; `nodes` are all the cluster's.
pub fn partitions(shape: Shape, config: &Config, partitions: &[&Partition], nodes: &[NodeView]) -> String {
    dated(shape, "scontrol", &config.cluster_name, "partitions", |json| {
        partitions.iter().for_each(|one| {
            json.object(|json| match shape.is_newer() {
                true => partition::write_newer(one, nodes, config, json),
                false => partition::write(one, nodes, config, json),
            });
        });
    })
}

/// The envelope that all answers share, around one list.
pub fn document(shape: Shape, program: &str, cluster: &str, name: &str, items: impl FnOnce(&mut Json)) -> String {
    envelope(shape, program, cluster, |json| json.list_field(name, items))
}

/// The same; newer parsers say when it was so.
pub fn dated(shape: Shape, program: &str, cluster: &str, name: &str, items: impl FnOnce(&mut Json)) -> String {
    envelope(shape, program, cluster, |json| {
        json.list_field(name, items);
        if shape.is_newer() {
            asked_now(json);
        }
    })
}

/// Answers are of the moment in which they are asked for.
fn asked_now(json: &mut Json) {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    json.number("last_update", Some(since.as_secs() as i64));
}

/// The same around one object.
pub fn object(shape: Shape, program: &str, cluster: &str, name: &str, fill: impl FnOnce(&mut Json)) -> String {
    envelope(shape, program, cluster, |json| json.object_field(name, fill))
}

fn envelope(shape: Shape, program: &str, cluster: &str, content: impl FnOnce(&mut Json)) -> String {
    let mut json = Json::new(shape);
    let parts: Vec<u64> = version::SLURM.split('.').filter_map(|part| part.parse().ok()).collect();
    json.object(|json| {
        if shape.is_newer() {
            content(json);
            newer_meta(shape, program, cluster, &parts, json);
            json.list_field("errors", |_| {});
            json.list_field("warnings", |_| {});
            return;
        }
        json.object_field("meta", |json| {
            json.object_field("plugin", |json| {
                json.field("type", "openapi/v0.0.38");
                json.field("name", "Slurm OpenAPI v0.0.38");
            });
            json.object_field("Slurm", |json| {
                json.object_field("version", |json| {
                    json.field("major", parts[0]);
                    json.field("micro", parts[2]);
                    json.field("minor", parts[1]);
                });
                json.field("release", version::SLURM);
            });
        });
        json.list_field("errors", |_| {});
        content(json);
    });
    json.finish()
}

fn newer_meta(shape: Shape, program: &str, cluster: &str, version: &[u64], json: &mut Json) {
    let uid = crate::users::own_uid();
    json.object_field("meta", |json| {
        json.object_field("plugin", |json| {
            json.field("type", "");
            json.field("name", "");
            json.field("data_parser", &format!("data_parser/{shape}"));
            json.field("accounting_storage", "");
        });
        json.object_field("client", |json| {
            json.field("source", "");
            json.field("user", &Names::default().user(uid));
            json.field("group", "");
        });
        json.list_field("command", |json| json.item(program));
        json.object_field("slurm", |json| {
            json.object_field("version", |json| {
                json.field("major", &version[0].to_string());
                json.field("micro", &version[2].to_string());
                json.field("minor", &version[1].to_string());
            });
            json.field("release", version::SLURM);
            json.field("cluster", cluster);
        });
    });
}
