//! The counters for Prometheus: plain text over HTTP on an address of this machine, if one is configured.
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use model::diagnosis::{Calls, Diagnosis};
use state::Cluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use wire::waiting_peers::WaitingPeers;

use crate::agents::Agents;
use crate::buffer_metrics::{self, Moved};
use crate::machine::Published;

/// Nobody needs longer, or more, to ask.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST_BYTES: usize = 8192;
/// A quarter of them from one address: the longest silent make room.
const READERS_MAX: usize = 64;

pub async fn serve(listener: TcpListener, published: Published, agents: Arc<Agents>) {
    let readers = WaitingPeers::new(READERS_MAX);
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let (published, agents) = (published.clone(), agents.clone());
                let reader = readers.enter(address.ip());
                tokio::spawn(async move {
                    tokio::select! {
                        answered = tokio::time::timeout(PATIENCE, answer(stream, &published, &agents)) => {
                            if let Ok(Err(error)) = answered {
                                tracing::debug!(%error, "a reader of metrics went away");
                            }
                        }
                        () = reader.must_go() => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "metrics cannot be asked for");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn answer(mut stream: TcpStream, published: &Published, agents: &Agents) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MOST_BYTES {
        match stream.read(&mut part).await? {
            0 => break,
            n => request.extend_from_slice(&part[..n]),
        }
    }
    let request = String::from_utf8_lossy(&request);
    let mut words = request.split_whitespace();
    let (status, kind, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => {
            let cluster = published.now();
            let diagnosis =
                published.statistics.diagnosis(&cluster, cluster.now(), agents.n_connected(), |uid| uid.to_string());
            ("200 OK", "text/plain; version=0.0.4", text(&cluster, &diagnosis, &published.statistics.moved()))
        }
        (Some("GET"), _) => ("404 Not Found", "text/plain", "metrics are at /metrics\n".to_string()),
        _ => ("405 Method Not Allowed", "text/plain", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

fn text(cluster: &Cluster, diagnosis: &Diagnosis, moved: &Moved) -> String {
    let mut out = Text::default();
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for job in cluster.jobs() {
        *states.entry(job.state().name()).or_default() += job.n_tasks_waiting();
    }
    out.family("spur_jobs", "gauge", "Jobs that the controller knows, by state.", "state", states);
    let mut nodes: BTreeMap<String, u64> = BTreeMap::new();
    let (mut n_cpus, mut n_used) = (0, 0);
    for node in cluster.nodes() {
        let word = cluster.node_view(node).state().word();
        *nodes.entry(word.trim_end_matches('*').to_string()).or_default() += 1;
        n_cpus += u64::from(node.config.cpus);
        n_used += u64::from(node.used.cpus.len());
    }
    out.family("spur_nodes", "gauge", "Nodes by state.", "state", nodes);
    out.family("spur_cpus", "gauge", "CPUs of all nodes.", "use", [("total", n_cpus), ("allocated", n_used)]);
    out.single("spur_queue_length", "gauge", "Jobs that only wait for the scheduler.", cluster.n_queued() as u64);
    out.single("spur_agents_connected", "gauge", "Agents that are connected.", diagnosis.n_agents.into());
    let jobs = &diagnosis.jobs;
    let ends = [("completed", jobs.completed), ("canceled", jobs.canceled), ("failed", jobs.failed)];
    out.single("spur_jobs_submitted_total", "counter", "Submissions.", jobs.submitted);
    out.single("spur_jobs_started_total", "counter", "Starts.", jobs.started);
    out.family("spur_jobs_ended_total", "counter", "Ends, by outcome.", "outcome", ends);
    let cycles = &diagnosis.cycles;
    out.single("spur_scheduler_cycles_total", "counter", "Looks of the scheduler at the queue.", cycles.n_cycles);
    out.seconds("spur_scheduler_cycle_seconds_total", "counter", "Time that the scheduler took.", cycles.total_micros);
    out.seconds("spur_scheduler_cycle_seconds_max", "gauge", "The longest look.", cycles.max_micros);
    out.single(
        "spur_scheduler_backfilled_total",
        "counter",
        "Jobs started past waiting ones.",
        cycles.n_backfilled_ever,
    );
    out.single("spur_journal_entries_total", "counter", "Entries of the log applied.", diagnosis.n_entries);
    let name = |calls: &Calls| calls.name.clone();
    let counts = diagnosis.by_call.iter().map(|calls| (name(calls), calls.count));
    out.family("spur_rpc_total", "counter", "Calls answered.", "call", counts);
    out.head("spur_rpc_seconds_total", "counter", "Time taken to answer calls.");
    for calls in &diagnosis.by_call {
        let secs = calls.total_micros as f64 / 1e6;
        out.line(format_args!("spur_rpc_seconds_total{{call=\"{}\"}} {secs}", calls.name));
    }
    out.head("spur_licenses", "gauge", "Licences.");
    for license in cluster.licenses() {
        for (kind, count) in [("total", license.total), ("used", license.used), ("reserved", license.reserved)] {
            out.line(format_args!("spur_licenses{{license=\"{}\",use=\"{kind}\"}} {count}", license.name));
        }
    }
    buffer_metrics::write(&mut out, cluster, moved);
    out.0
}

/// The text format of Prometheus.
#[derive(Default)]
pub struct Text(String);

impl Text {
    pub fn line(&mut self, line: std::fmt::Arguments) {
        writeln!(self.0, "{line}").expect("a string takes any text");
    }

    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    pub fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.head(name, kind, help);
        self.line(format_args!("{name} {value}"));
    }

    fn seconds(&mut self, name: &str, kind: &str, help: &str, micros: u64) {
        self.head(name, kind, help);
        self.line(format_args!("{name} {}", micros as f64 / 1e6));
    }

    pub fn family(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (impl std::fmt::Display, u64)>,
    ) {
        self.head(name, kind, help);
        for (key, value) in values {
            self.line(format_args!("{name}{{{label}=\"{key}\"}} {value}"));
        }
    }
}
