//! How `salloc` and `srun` begin: who asks, what is asked, and then the work on the cluster.
use config::Client;

use super::{Caller, Problem, Program};
use crate::context;
use crate::output::print;
use crate::sbatch::error_code;

/// What the arguments come to.
#[derive(Clone, Debug, PartialEq)]
pub enum Built<Plan> {
    /// Something to print, nothing to do.
    Answer(String),
    Carry(Box<Plan>),
}

/// Builds the plan and carries it out; gives the exit code.
pub fn start<Plan>(
    program: Program,
    build: impl FnOnce(&Caller) -> Result<Built<Plan>, Problem>,
    carry_out: impl AsyncFnOnce(&Client, Plan) -> i32,
) -> i32 {
    let cluster = context::cluster();
    let cluster_name = cluster.as_ref().map(|cluster| cluster.cluster_name.clone()).unwrap_or_default();
    let caller = Caller::current(&cluster_name).map(|caller| match &cluster {
        Ok(cluster) => caller.at(cluster),
        Err(_) => caller,
    });
    match caller.map_err(Problem::error).and_then(|caller| build(&caller)) {
        Err(problem) => {
            problem.print(program);
            error_code(problem.code)
        }
        Ok(Built::Answer(text)) => {
            print(&text);
            0
        }
        Ok(Built::Carry(plan)) => match cluster {
            Ok(cluster) => context::block_on(carry_out(&cluster, *plan)),
            Err(why) => {
                eprintln!("{}: error: {why}", program.name());
                error_code(1)
            }
        },
    }
}
