//! From a launch to the plans of its tasks: script, streams, programs.
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::pattern;
use model::spec::OpenMode;
use model::step::{StepSpec, StepStream};

use super::binding::Binding;
use super::files::{StreamEnd, TaskFiles, WriteMode};
use super::identity::Identity;
use super::streams::{LabelledFile, OutputEnd};
use super::task::Plan;
use super::task_scripts::Scripts;
use super::{environment, gpu_environment};
use crate::protocol::Start;
use crate::{spool, sys};

/// A task's plan, and the supervisor's ends of its streams.
pub struct Prepared {
    pub rank: u32,
    pub plan: Plan,
    pub input: Option<OwnedFd>,
    pub output: Option<OutputEnd>,
    pub errors: Option<OutputEnd>,
    /// The streams are one terminal: `output` is its other side, and takes the input too.
    pub is_terminal: bool,
}

impl Prepared {
    /// Whether the supervisor writes to files of the task's.
    pub fn has_labels(&self) -> bool {
        [&self.output, &self.errors].into_iter().flatten().any(|end| end.file.is_some())
    }

    pub fn find_files(&mut self, files: &TaskFiles) {
        let ends = [&mut self.output, &mut self.errors].into_iter().flatten();
        ends.filter_map(|end| end.file.as_mut()).for_each(|file| file.find(files));
    }
}

/// Why nothing can be started.
pub struct NotStarted {
    pub why: String,
    /// Nothing else could be started here either.
    pub is_the_nodes_fault: bool,
}

impl From<String> for NotStarted {
    fn from(why: String) -> Self {
        NotStarted { why, is_the_nodes_fault: false }
    }
}

/// Opens nothing that the user has chosen: the files are still to be opened.
pub fn prepare(start: &Start, identity: &Identity) -> Result<(Vec<Prepared>, TaskFiles), NotStarted> {
    let mut files = TaskFiles::default();
    match &start.launch.step_spec {
        None => Ok((vec![prepare_batch(start, identity, &mut files)?], files)),
        Some(spec) => {
            let tasks = 0..environment::tasks_here(&start.launch);
            let tasks = tasks.map(|local_id| prepare_task(start, identity, spec, &mut files, local_id));
            let tasks = tasks.collect::<Result<_, String>>()?;
            Ok((tasks, files))
        }
    }
}

fn prepare_batch(start: &Start, identity: &Identity, files: &mut TaskFiles) -> Result<Prepared, NotStarted> {
    let launch = &start.launch;
    let spec = &launch.job_spec;
    let script = write_script(start, identity).map_err(|error| NotStarted {
        why: format!("cannot write the script: {error}"),
        is_the_nodes_fault: !is_users_doing(&error),
    })?;
    let mode = match spec.open_mode {
        OpenMode::Append => WriteMode::Append,
        OpenMode::Default if launch.is_rerun => WriteMode::Append,
        OpenMode::Default | OpenMode::Truncate => WriteMode::Truncate,
    };
    let default = if launch.array.is_some() { "slurm-%A_%a.out" } else { "slurm-%j.out" };
    let stdin = match &spec.stdin {
        None => files.nothing()?,
        Some(pattern) => files.input(start, pattern, 0)?,
    };
    let stdout = files.output(start, spec.stdout.as_deref().unwrap_or(default), 0, mode)?;
    let stderr = match &spec.stderr {
        None => stdout,
        Some(pattern) => files.output(start, pattern, 0, mode)?,
    };
    files.note_in(stderr);
    let (stdout, stderr) = (StreamEnd::File(stdout), StreamEnd::File(stderr));
    let program = c_string(script.as_os_str().as_bytes())?;
    let mut arguments = vec![program.clone()];
    for argument in &spec.arguments {
        arguments.push(c_string(argument.as_bytes())?);
    }
    let plan = Plan {
        programs: vec![program],
        name: script.display().to_string(),
        arguments,
        environment: environment::build(start, identity, 0),
        work_dir: spec.work_dir.clone(),
        stdin,
        stdout,
        stderr,
        has_terminal: false,
        is_batch: true,
        binding: None,
        gpu_note: String::new(),
        scripts: Scripts::default(),
        line: None,
    };
    Ok(Prepared { rank: 0, plan, input: None, output: None, errors: None, is_terminal: false })
}

/// An executable copy that only the user may read.
fn write_script(start: &Start, identity: &Identity) -> io::Result<PathBuf> {
    let path = spool::script_path(Path::new(&start.spool_dir), start.slot);
    let script = &start.launch.script;
    match fs::symlink_metadata(&path) {
        // The same user's file is written over, if nothing of an earlier run runs it, or has a lease on it.
        Ok(metadata) if is_plain_file_of(identity.uid, &metadata) && write_over(&path, script).is_ok() => {
            return Ok(path);
        }
        // Anybody else's is not even opened: it is left to those who may still have it open.
        Ok(_) => fs::remove_file(&path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = path.parent().expect("a file in a directory");
            match fs::create_dir(dir) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => fs::set_permissions(dir, fs::Permissions::from_mode(0o755))?,
            }
        }
        Err(_) => fs::remove_file(&path)?,
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&path)?;
    file.set_permissions(fs::Permissions::from_mode(0o700))?;
    file.write_all(script)?;
    if sys::own_uid() == 0 && identity.uid != 0 {
        std::os::unix::fs::fchown(&file, Some(identity.uid), Some(identity.gid))?;
    }
    Ok(path)
}

/// Never waits: a lease is not ours to wait for.
fn write_over(path: &Path, script: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
    file.write_all(script)?;
    file.set_len(script.len() as u64)
}

/// The user's quota, or what the user chose, is in the way: the node could run others' jobs as ever.
fn is_users_doing(error: &io::Error) -> bool {
    let of_users = [libc::EDQUOT, libc::E2BIG, libc::ENAMETOOLONG, libc::EFBIG, libc::ETXTBSY, libc::EAGAIN];
    error.kind() == io::ErrorKind::InvalidInput || error.raw_os_error().is_some_and(|code| of_users.contains(&code))
}

/// As this wrote it: its owner may have changed its mode, or linked it elsewhere.
fn is_plain_file_of(uid: u32, metadata: &fs::Metadata) -> bool {
    metadata.is_file() && metadata.uid() == uid && metadata.mode() & 0o7777 == 0o700 && metadata.nlink() == 1
}

fn prepare_task(
    start: &Start,
    identity: &Identity,
    spec: &StepSpec,
    files: &mut TaskFiles,
    local_id: u32,
) -> Result<Prepared, String> {
    let rank = start.launch.rank(local_id);
    let environment = environment::build(start, identity, local_id);
    let command = spec.command(rank).ok_or_else(|| format!("no program is named for task {rank}"))?;
    let name = command.first().cloned().unwrap_or_default();
    let programs = candidates(&name, environment.value("PATH"))?;
    let arguments = command.iter().map(|word| c_string(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let streams = match &spec.pty {
        Some(size) if rank == 0 => open_terminal(size.rows, size.columns)?,
        Some(_) => Streams::all(files.nothing()?),
        None => open_streams(start, spec, files, local_id)?,
    };
    let plan = Plan {
        programs,
        name,
        arguments,
        environment,
        work_dir: spec.work_dir.clone(),
        stdin: streams.stdin,
        stdout: streams.stdout,
        stderr: streams.stderr,
        has_terminal: streams.is_terminal,
        is_batch: false,
        binding: Binding::of(start, spec, local_id),
        gpu_note: if spec.tells_gpus { gpu_environment::gpu_note(start, local_id) } else { String::new() },
        scripts: Scripts::new(&start.launch, spec),
        line: None,
    };
    Ok(Prepared {
        rank,
        plan,
        input: streams.input,
        output: streams.output,
        errors: streams.errors,
        is_terminal: streams.is_terminal,
    })
}

/// A task's three streams, and the supervisor's ends of those that go to the client.
struct Streams {
    stdin: StreamEnd,
    stdout: StreamEnd,
    stderr: StreamEnd,
    input: Option<OwnedFd>,
    output: Option<OutputEnd>,
    errors: Option<OutputEnd>,
    is_terminal: bool,
}

impl Streams {
    fn all(file: StreamEnd) -> Self {
        Streams {
            stdin: file.clone(),
            stdout: file.clone(),
            stderr: file,
            input: None,
            output: None,
            errors: None,
            is_terminal: false,
        }
    }
}

fn open_streams(start: &Start, spec: &StepSpec, files: &mut TaskFiles, local_id: u32) -> Result<Streams, String> {
    let rank = start.launch.rank(local_id);
    let pipe = || sys::pipe().map_err(|error| format!("cannot make a pipe: {error}"));
    let (mut input, mut output, mut errors) = (None, None, None);
    let stdin = match &spec.stdin {
        StepStream::File(pattern) => files.input(start, pattern, local_id)?,
        StepStream::ClientTask(task) if *task != rank => files.nothing()?,
        StepStream::Nothing => files.nothing()?,
        StepStream::Client | StepStream::ClientTask(_) => {
            let (read, write) = pipe()?;
            input = Some(write);
            StreamEnd::Open(Rc::new(read))
        }
    };
    let mut open = |stream: &StepStream, end: &mut Option<OutputEnd>| match stream {
        StepStream::File(pattern) => {
            let is_shared = start.launch.step_shares.len() > 1
                && !pattern::varies_by_task(pattern)
                && !pattern::varies_by_node(pattern);
            let mode = match (spec.appends, is_shared) {
                (true, _) => WriteMode::Append,
                (false, true) if start.launch.node_index > 0 => WriteMode::Join,
                (false, _) => WriteMode::Truncate,
            };
            let file = files.output(start, pattern, local_id, mode)?;
            if !spec.labels {
                return Ok(StreamEnd::File(file));
            }
            files.note_in(file);
            let n_tasks = start.launch.step_shares.iter().map(|share| share.n_tasks).sum();
            let (read, write) = pipe()?;
            *end = Some(OutputEnd { fd: read, file: Some(LabelledFile::new(file, n_tasks)) });
            Ok(StreamEnd::Open(Rc::new(write)))
        }
        StepStream::ClientTask(task) if *task != rank => files.nothing(),
        StepStream::Nothing => files.nothing(),
        StepStream::Client | StepStream::ClientTask(_) => {
            let (read, write) = pipe()?;
            *end = Some(OutputEnd { fd: read, file: None });
            Ok(StreamEnd::Open(Rc::new(write)))
        }
    };
    let stdout = open(&spec.stdout, &mut output)?;
    let stderr = open(&spec.stderr, &mut errors)?;
    Ok(Streams { stdin, stdout, stderr, input, output, errors, is_terminal: false })
}

fn open_terminal(rows: u16, columns: u16) -> Result<Streams, String> {
    use std::os::fd::FromRawFd;
    let (mut near, mut far) = (0, 0);
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: openpty fills both descriptors, which nobody else knows of.
    let (near, far) = unsafe {
        sys::check(libc::openpty(&mut near, &mut far, std::ptr::null_mut(), std::ptr::null(), &size))
            .map_err(|error| format!("cannot open a terminal: {error}"))?;
        for fd in [near, far] {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        (OwnedFd::from_raw_fd(near), OwnedFd::from_raw_fd(far))
    };
    let mut streams = Streams::all(StreamEnd::Open(Rc::new(far)));
    streams.output = Some(OutputEnd { fd: near, file: None });
    streams.is_terminal = true;
    Ok(streams)
}

/// Where a program may be: itself if it has a slash, else in each directory of PATH, and at last in the working directory.
fn candidates(name: &str, path: Option<&[u8]>) -> Result<Vec<CString>, String> {
    if name.contains('/') {
        return Ok(vec![c_string(name.as_bytes())?]);
    }
    let in_dir = |dir: &[u8]| {
        let dir = if dir.is_empty() { &b"."[..] } else { dir };
        c_string(&[dir, b"/", name.as_bytes()].concat())
    };
    let in_path = path.into_iter().flat_map(|path| path.split(|byte| *byte == b':'));
    in_path.map(in_dir).chain([c_string(name.as_bytes())]).collect()
}

fn c_string(bytes: &[u8]) -> Result<CString, String> {
    CString::new(bytes).map_err(|_| "a word of the command holds a NUL byte".to_owned())
}
