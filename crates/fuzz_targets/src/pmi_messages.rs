//! The process manager interface as any program of a user may speak it: messages, and whole tasks beside each other.
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use agent::foreign_bytes::{PmiNews, PmiServer, PmiVersion, take_pmi_message};
use model::agent::Launch;
use model::step::Mpi;
use model::{NodeShare, StepSpec};

/// The longest message that is believed.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const N_TASKS: u32 = 2;

pub fn seeds() -> Vec<Vec<u8>> {
    let two = |body: &str| format!("{:>6}{body}", body.len());
    let hello = "cmd=init pmi_version=2 pmi_subversion=0\n";
    let talk = [
        two("cmd=fullinit;pmijobid=1;pmirank=0;threaded=FALSE;"),
        two("cmd=kvs-put;key=k;value=v;;w;"),
        two("cmd=info-getnodeattr;key=a;wait=TRUE;thrid=1;"),
        two("cmd=info-putnodeattr;key=a;value=b;"),
        two("cmd=kvs-fence;"),
        two("cmd=kvs-get;jobid=1.0;srcid=-1;key=k;"),
        two("cmd=abort;isworld=TRUE;msg=over;"),
        two("cmd=finalize;"),
    ];
    let lines = "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\ncmd=get_my_kvsname\n\
        cmd=put kvsname=1.0 key=k value=a b=c\ncmd=barrier_in\ncmd=get kvsname=1.0 key=k\ncmd=finalize\n";
    let seed = |which: u8, text: &str| [&[which], text.as_bytes()].concat();
    vec![
        seed(0, lines),
        seed(1, &talk.concat()),
        seed(2, lines),
        seed(3, &format!("{hello}{}", talk.concat())),
        seed(1, "  \t+5cmd=;"),
    ]
}

pub fn run(bytes: &[u8]) {
    let Some((which, said)) = bytes.split_first() else { return };
    match which % 4 {
        0 => take_all(said, PmiVersion::One),
        1 => take_all(said, PmiVersion::Two),
        other => serve(said, other == 3),
    }
}

/// Each message is read, and is read again as it would be written.
fn take_all(said: &[u8], version: PmiVersion) {
    let mut left = said.to_vec();
    while let Ok(Some(message)) = take_pmi_message(&mut left, version) {
        drop(message.write(version));
    }
    assert!(left.len() <= said.len());
}

fn launch() -> Launch {
    let share = NodeShare { node: "n1".into(), n_tasks: N_TASKS, ..NodeShare::default() };
    Launch {
        step_spec: Some(Box::new(StepSpec { mpi: Mpi::Pmi2, ..StepSpec::default() })),
        step_shares: vec![share],
        n_tasks: N_TASKS,
        ..Launch::default()
    }
}

/// Two tasks say the same to a server that knows both, or the second nothing.
fn serve(said: &[u8], both: bool) {
    let Some(mut server) = PmiServer::new(&launch()) else { panic!("the step wants a server") };
    let mut tasks: Vec<File> =
        (0..N_TASKS).filter_map(|rank| server.add_task(rank).ok()).map(|(fd, _)| task(fd)).collect();
    let mut left = vec![said; if both { tasks.len() } else { 1 }];
    // A task may write less than it wants: the server has to read first.
    for _ in 0..64 {
        let mut n_written = 0;
        for (task, left) in tasks.iter_mut().zip(&mut left) {
            let n_here = task.write(left).unwrap_or(0);
            *left = &left[n_here..];
            n_written += n_here;
        }
        for news in server.attend() {
            if let PmiNews::Fence { sequence, entries } = news {
                assert!(entries.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() <= MESSAGE_BYTES_MAX);
                server.fenced(sequence, entries);
            }
        }
        let mut answers = vec![0; 1 << 16];
        tasks.iter_mut().for_each(|task| drop(task.read(&mut answers)));
        if n_written == 0 {
            return;
        }
    }
}

fn task(fd: OwnedFd) -> File {
    // SAFETY: a plain call on a descriptor of ours.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    File::from(fd)
}
