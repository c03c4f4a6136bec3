//! Slurm's JSON: jobs, nodes and partitions in the shape its clients parse.
use model::Partition;
use model::config::Config;
use model::request::NodeView;

use crate::job_view::JobView;
use crate::users::Names;

mod job;
mod node;
mod partition;
mod write;
mod yaml;

pub use write::Json;
pub use yaml::of_json as yaml;

use crate::version;

/// What `--json` prints for jobs.
pub fn jobs(rows: &[JobView]) -> String {
    document("jobs", |json| rows.iter().for_each(|row| json.object(|json| job::write(row, json))))
}

/// What `--json` prints for nodes.
pub fn nodes(nodes: &[&NodeView], config: &Config) -> String {
    let names = Names::default();
    document("nodes", |json| {
        nodes.iter().for_each(|view| json.object(|json| node::write(view, config, &names, json)));
    })
}

/// What `--json` prints for partitions; `nodes` are all the cluster's.
pub fn partitions(partitions: &[&Partition], nodes: &[NodeView]) -> String {
    document("partitions", |json| {
        partitions.iter().for_each(|one| json.object(|json| partition::write(one, nodes, json)));
    })
}

/// The envelope that all answers share, around one list.
pub fn document(name: &str, items: impl FnOnce(&mut Json)) -> String {
    let mut json = Json::new();
    json.object(|json| {
        json.object_field("meta", |json| {
            json.object_field("plugin", |json| {
                json.field("type", "openapi/v0.0.38");
                json.field("name", "Slurm OpenAPI v0.0.38");
            });
            json.object_field("Slurm", |json| {
                let parts: Vec<u64> = version::SLURM.split('.').filter_map(|part| part.parse().ok()).collect();
                json.object_field("version", |json| {
                    json.field("major", parts[0]);
                    json.field("micro", parts[2]);
                    json.field("minor", parts[1]);
                });
                json.field("release", version::SLURM);
            });
        });
        json.list_field("errors", |_| {});
        json.list_field(name, items);
    });
    json.finish()
}
