//! `scontrol fsdampeningfactor`: how much use over share counts, where there is no fair tree.
use model::Command;

use super::{Reply, asking};

pub fn set(keyword: &str, rest: &[String]) -> Reply {
    let text = match rest {
        [] => return Reply::failed(&format!("too few arguments for keyword:{keyword}")),
        [text] => text,
        _ => return Reply::failed(&format!("too many arguments for keyword:{keyword}")),
    };
    let Some(factor) = text.parse::<u16>().ok().filter(|factor| *factor != 0) else {
        // Slurm calls that no failure.
        return Reply { err: format!("invalid dampening factor: {text}\n"), ..Reply::default() };
    };
    asking("slurm_set_fs_dampeningfactor error", async |controller, _| {
        controller.command(Command::SetDampening { factor: factor.into() }).await?;
        Ok(Reply::default())
    })
}
