//! The little that a command must know before it can ask the controller: where the cluster is.
//!
//! Commands run hundreds of times a second, and a file may describe ten thousand nodes: only the lines before the first
//! table, `[controller]` and `[agent]` are parsed, and reading stops as soon as both tables have gone by.
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::config::{PATIENCE_SECS, Sockets};
use toml_edit::{Document, Item};

use crate::plain::Plain;
use crate::{DEFAULT_AGENT_SOCKET, DEFAULT_CONTROLLER_SOCKET, home, slurm};

/// Where a cluster is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The file this was read from.
    pub file: PathBuf,
    pub cluster_name: String,
    pub controller_socket: Sockets,
    /// With `%n` for the node's name.
    pub agent_socket: String,
    /// What srun runs around every step, unless it is told otherwise.
    pub srun_prolog: String,
    pub srun_epilog: String,
    /// `--mpi` where srun does not say; empty is none.
    pub mpi_default: String,
    /// `--kill-on-bad-exit` and `--wait` where srun does not say; 0 is none.
    pub kill_on_bad_exit: bool,
    pub wait_secs: u32,
    /// `--core-spec` and `--thread-spec` count.
    pub may_spare: bool,
}

/// What a command says when it finds no cluster.
pub const NO_CLUSTER: &str = "no cluster configured: start one with `spur up`, or point SPUR_CONF at a spur.conf";

const SYSTEM_CONFS: [&str; 2] = ["/etc/spur/spur.conf", "/etc/slurm/slurm.conf"];

impl Client {
    pub fn agent_socket_of(&self, node: &str) -> PathBuf {
        PathBuf::from(self.agent_socket.replace("%n", node))
    }
}

/// Finds the configuration: `explicit`, then `SPUR_CONF`, then `SLURM_CONF`, then the user's own cluster, then those of
/// the machine, `/etc/spur/spur.conf` and `/etc/slurm/slurm.conf`.
pub fn find(explicit: Option<&Path>) -> Result<Client, String> {
    let file = locate(explicit)?;
    let mut client = read(&file)?;
    client.controller_socket.owner = std::fs::metadata(&file).ok().map(|found| found.uid());
    Ok(client)
}

/// The file that [`find`] reads. One that is named must exist; the others may be absent.
pub fn locate(explicit: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = explicit {
        return Ok(path.into());
    }
    let given = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    if let Some(path) = given("SPUR_CONF").or_else(|| given("SLURM_CONF")) {
        return Ok(path.into());
    }
    let system = SYSTEM_CONFS.map(PathBuf::from);
    home::own_conf().into_iter().chain(system).find(|path| path.exists()).ok_or_else(|| NO_CLUSTER.into())
}

fn read(file: &Path) -> Result<Client, String> {
    let unreadable = |error: io::Error| format!("cannot read {}: {error}", file.display());
    if slurm::is_slurm(file).map_err(unreadable)? {
        return slurm::client(file).map_err(unreadable);
    }
    let head = head(BufReader::new(File::open(file).map_err(unreadable)?)).map_err(unreadable)?;
    let text = match head {
        Some(head) => head,
        None => std::fs::read_to_string(file).map_err(unreadable)?,
    };
    match Plain::read(&text) {
        Some(plain) if plain.text("client", "authority").is_none() => {
            let text = |table: &str, key: &str| plain.text(table, key).map(str::to_string);
            Ok(here(file, text, |table, key| plain.number(table, key)))
        }
        _ => read_any(file, text),
    }
}

/// With a parser of the whole language.
fn read_any(file: &Path, text: String) -> Result<Client, String> {
    let document = Document::parse(text).map_err(|_| broken(file))?;
    let item = |table: &str, key: &str| match table {
        "" => document.get(key),
        _ => document.get(table).and_then(|table| table.get(key)),
    };
    let value = |table: &str, key: &str| item(table, key).and_then(Item::as_str).map(str::to_string);
    if let Some(remotes) = item("client", "controllers").and_then(Item::as_array) {
        let addresses = remotes.iter().filter_map(|address| address.as_str().map(PathBuf::from)).collect();
        let authority = value("client", "authority").as_deref().and_then(mark);
        let controller_socket = elsewhere(addresses, authority).ok_or_else(|| broken(file))?;
        let cluster_name = value("", "cluster_name").unwrap_or("spur".into());
        // There is no agent here.
        let agent_socket = "/dev/null/%n".into();
        return Ok(Client {
            file: file.into(),
            cluster_name,
            controller_socket,
            agent_socket,
            srun_prolog: value("", "srun_prolog").unwrap_or_default(),
            srun_epilog: value("", "srun_epilog").unwrap_or_default(),
            mpi_default: value("", "mpi_default").unwrap_or_default(),
            kill_on_bad_exit: item("", "kill_on_bad_exit").and_then(Item::as_integer) == Some(1),
            may_spare: item("", "may_spare_cores").and_then(Item::as_integer) == Some(1),
            wait_secs: item("", "srun_wait")
                .and_then(Item::as_integer)
                .and_then(|secs| secs.try_into().ok())
                .unwrap_or(0),
        });
    }
    Ok(here(file, value, |table, key| item(table, key).and_then(Item::as_integer)))
}

/// A cluster with a daemon on this machine.
fn here(
    file: &Path,
    text: impl Fn(&str, &str) -> Option<String>,
    number: impl Fn(&str, &str) -> Option<i64>,
) -> Client {
    let of =
        |table: &str, key: &str| number(table, key).and_then(|number| u32::try_from(number).ok()).unwrap_or_default();
    let number = |key: &str| of("controller", key);
    let anchored = |path: &str| {
        let folder = std::path::absolute(file).ok().and_then(|file| file.parent().map(Path::to_path_buf));
        folder.unwrap_or_default().join(path).to_string_lossy().into_owned()
    };
    let socket = anchored(text("controller", "socket").as_deref().unwrap_or(DEFAULT_CONTROLLER_SOCKET));
    Client {
        file: file.into(),
        cluster_name: text("", "cluster_name").unwrap_or("spur".into()),
        controller_socket: model::config::sockets(&socket, number("local_members"), number("patience")),
        agent_socket: anchored(text("agent", "socket").as_deref().unwrap_or(DEFAULT_AGENT_SOCKET)),
        srun_prolog: text("", "srun_prolog").unwrap_or_default(),
        srun_epilog: text("", "srun_epilog").unwrap_or_default(),
        mpi_default: text("", "mpi_default").unwrap_or_default(),
        kill_on_bad_exit: of("", "kill_on_bad_exit") == 1,
        wait_secs: of("", "srun_wait"),
        may_spare: of("", "may_spare_cores") == 1,
    }
}

/// Controllers of other machines, and the mark of the authority that they must show.
fn elsewhere(addresses: Vec<PathBuf>, authority: Option<[u8; 32]>) -> Option<Sockets> {
    let mut addresses = addresses.into_iter();
    let (first, authority) = (addresses.next()?, Some(authority?));
    Some(Sockets { first, others: addresses.collect(), patience_secs: PATIENCE_SECS, authority, owner: None })
}

/// 64 hexadecimal digits.
fn mark(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn broken(file: &Path) -> String {
    format!("{file} has mistakes: see `spur config check {file}`", file = file.display())
}

/// The lines of a file that matter here; none when only a full reading can tell, because a text spans lines.
fn head(mut lines: impl BufRead) -> io::Result<Option<String>> {
    let (mut kept, mut line) = (String::new(), String::new());
    let (mut is_kept, mut n_seen) = (true, 0);
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(Some(kept));
        }
        let trimmed = line.trim_start();
        if trimmed.starts_with('[') {
            if n_seen == 2 {
                return Ok(Some(kept));
            }
            let name = trimmed.trim_start_matches('[').trim_start_matches(['"', '\'', ' ', '\t']);
            let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            // A file of a machine that only asks has nothing else.
            is_kept = matches!(name, "controller" | "agent" | "client");
            n_seen += usize::from(is_kept);
        }
        if line.contains("\"\"\"") || line.contains("'''") {
            return Ok(None);
        }
        if is_kept {
            kept.push_str(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(head(text.as_bytes()).unwrap().as_deref(), expected, "{text}");
    }

    #[test]
    fn only_the_lines_that_matter_are_kept() {
        check("cluster_name = \"a\"\n[[nodes]]\nnames = \"n1\"\n", Some("cluster_name = \"a\"\n"));
        check("[[nodes]]\nx = 1\n[controller]\nsocket = \"s\"\n[[nodes]]\n", Some("[controller]\nsocket = \"s\"\n"));
        check("[agent]\na = 1\n[controller]\nb = 2\n[[nodes]]\n\"\"\"", Some("[agent]\na = 1\n[controller]\nb = 2\n"));
        check("note = \"\"\"\n[controller]\n\"\"\"\n", None);
    }

    #[test]
    fn a_cluster_is_found_by_its_file() {
        let folder = std::env::temp_dir().join(format!("spur-client-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("spur.conf");
        let text = "cluster_name = \"ant\"\n[[nodes]]\nnames = \"n1\"\n[controller]\nsocket = \"run/c.sock\"\n";
        std::fs::write(&file, text).unwrap();
        let client = find(Some(&file)).unwrap();
        assert_eq!(client.cluster_name, "ant");
        assert_eq!(client.controller_socket.first, folder.join("run/c.sock"));
        assert_eq!(client.controller_socket.owner, Some(std::fs::metadata(&file).unwrap().uid()));
        assert_eq!(client.agent_socket_of("n7"), Path::new("/run/spur/agent-n7.sock"));
        std::fs::write(&file, "cluster_name = \n").unwrap();
        assert!(find(Some(&file)).unwrap_err().contains("spur config check"));
        assert!(find(Some(&folder.join("absent"))).unwrap_err().starts_with("cannot read"));
        let digits = "0f".repeat(32);
        std::fs::write(&file, format!("[client]\ncontrollers = [\"h:1\", \"i:2\"]\nauthority = \"{digits}\"\n"))
            .unwrap();
        let sockets = find(Some(&file)).unwrap().controller_socket;
        assert_eq!((sockets.all().count(), sockets.authority), (2, Some([0x0f; 32])));
        // Without the mark anybody could answer.
        std::fs::write(&file, "[client]\ncontrollers = [\"h:1\"]\n").unwrap();
        assert!(find(Some(&file)).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
