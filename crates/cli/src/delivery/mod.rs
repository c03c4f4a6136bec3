//! Bringing files to the nodes of a job, piece by piece (`sbcast`, `srun --bcast`).
pub mod libraries;

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use config::Client;
use model::ask::{Answer, FileEnd, FileTimes, Piece, Question};
use wire::NodeAgent;

use crate::live;

/// How files are brought.
pub struct Delivery {
    /// The command that speaks, for warnings.
    pub program: &'static str,
    pub replaces: bool,
    pub preserves: bool,
    pub piece_bytes: usize,
    /// For one piece, of one node.
    pub patience: Duration,
}

impl Delivery {
    /// One file to all nodes, each with the file's path there. The error is ready to print.
    pub async fn bring(&self, cluster: &Client, source: &str, targets: &[(String, String)]) -> Result<(), String> {
        let words = |error: std::io::Error| {
            let text = error.to_string();
            format!("Can't open `{source}`: {}", text.split(" (os error").next().unwrap_or(&text))
        };
        // Looked at first: a pipe would not even open.
        if !std::fs::metadata(source).map_err(words)?.is_file() {
            return Err(format!("{source} is not a regular file"));
        }
        let file = File::open(source).map_err(words)?;
        let metadata = file.metadata().map_err(words)?;
        let mut agents = connect(cluster, targets).await?;
        let times = FileTimes { accessed_secs: metadata.atime(), modified_secs: metadata.mtime() };
        let mut offset = 0;
        loop {
            let mut data = vec![0; self.piece_bytes];
            let mut length = 0;
            while length < data.len() {
                match file.read_at(&mut data[length..], offset + length as u64).map_err(words)? {
                    0 => break,
                    more => length += more,
                }
            }
            data.truncate(length);
            let is_last = length < self.piece_bytes;
            let size = offset + length as u64;
            let times = self.preserves.then(|| times.clone());
            let mode = if self.preserves { metadata.mode() } else { metadata.mode() & 0o777 & !umask() };
            let last = is_last.then_some(FileEnd { mode, size, times });
            let mut refusals = Vec::new();
            for (node, path, agent) in &mut agents {
                let (path, data, last) = (path.clone(), data.clone(), last.clone());
                let piece = Piece { path, offset, data, replaces: self.replaces, last };
                refusals.extend(self.ask(node, agent, &Question::Write(piece)).await.err());
            }
            if !refusals.is_empty() {
                return Err(refusals.join(&format!("\n{}: error: ", self.program)));
            }
            if is_last {
                return Ok(());
            }
            offset = size;
        }
    }

    /// The shared libraries of a program, into a directory beside it. What is not found is told and left out.
    pub async fn bring_libraries(
        &self,
        cluster: &Client,
        program: &str,
        targets: &[(String, String)],
        excluded: &[String],
    ) -> Result<(), String> {
        let found = libraries::of(program).await?;
        for missing in &found.missing {
            eprintln!("{}: warning: {missing} is needed by {program} and was not found", self.program);
        }
        for (node, path, agent) in &mut connect(cluster, targets).await? {
            let path = libraries::directory(path);
            self.ask(node, agent, &Question::MakeDirectory { path }).await?;
        }
        for library in found.paths.iter().filter(|path| !libraries::is_excluded(path, excluded)) {
            let name = library.rsplit('/').next().unwrap_or(library);
            let place =
                |(node, path): &(String, String)| (node.clone(), format!("{}/{name}", libraries::directory(path)));
            let places: Vec<(String, String)> = targets.iter().map(place).collect();
            // Those of an earlier delivery are in nobody's way.
            let over = Delivery { replaces: true, ..*self };
            Box::pin(over.bring(cluster, library, &places)).await?;
        }
        Ok(())
    }

    async fn ask(&self, node: &str, agent: &mut NodeAgent, question: &Question) -> Result<(), String> {
        let Ok(answer) = tokio::time::timeout(self.patience, agent.ask(question)).await else {
            return Err(format!("REQUEST_FILE_BCAST({node}): Socket timed out on send/recv operation"));
        };
        match answer {
            Ok(Answer::Written) => Ok(()),
            Ok(Answer::Refused { why }) => Err(format!("REQUEST_FILE_BCAST({node}): {why}")),
            Ok(Answer::Runs(_) | Answer::Moved(_) | Answer::MoveErrors(_)) => {
                Err(format!("REQUEST_FILE_BCAST({node}): another answer"))
            }
            Err(error) => Err(format!("REQUEST_FILE_BCAST({node}): {error}")),
        }
    }
}

async fn connect(cluster: &Client, targets: &[(String, String)]) -> Result<Vec<(String, String, NodeAgent)>, String> {
    let mut agents = Vec::new();
    for (node, path) in targets {
        let agent = NodeAgent::connect(&live::way(cluster, node)).await;
        let agent = agent.map_err(|error| format!("REQUEST_FILE_BCAST({node}): {error}"))?;
        agents.push((node.clone(), path.clone(), agent));
    }
    Ok(agents)
}

fn umask() -> u32 {
    // SAFETY: set and set back; commands have one thread here.
    unsafe {
        let mask = libc::umask(0o022);
        libc::umask(mask);
        mask
    }
}
