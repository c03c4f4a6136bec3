//! One node's server: what it tells its tasks about the step, and what it asks of the other nodes.
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use crate::layout::{self, Infos, Process, WILDCARD};
use crate::library::{Done, Library, Modex, Status, Version, c_string, text};
use crate::{NOT_FOUND, SUCCESS};

/// The step, as all its nodes know it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub namespace: String,
    /// The scheduler's own name of it.
    pub id: String,
    pub uid: u32,
    pub gid: u32,
    pub nodes: Vec<Node>,
    /// Which of the nodes this is.
    pub here: usize,
    /// For the files of server and tasks; theirs alone.
    pub directory: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    /// In ascending order.
    pub ranks: Vec<u32>,
}

/// What the server wants of the rest of the step. Numbers are given back with the answer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// All tasks here that take part have entered a fence; these ranks take part.
    Fence {
        number: u64,
        ranks: Vec<u32>,
        #[serde(with = "model::bytes")]
        data: Vec<u8>,
    },
    /// A task here wants what this one, on another node, has put.
    Get {
        number: u64,
        rank: u32,
    },
    /// The answer to `fetch`.
    Got {
        number: u64,
        status: i32,
        #[serde(with = "model::bytes")]
        data: Vec<u8>,
    },
    /// A task asks that all be ended.
    Abort {
        rank: u32,
        text: String,
    },
    /// A task has come, and later says good-bye.
    Came {
        rank: u32,
    },
    Left {
        rank: u32,
    },
}

/// The one server of this process. It ends with the process: the library's own way to end it waits for its clients, and
/// leaves nothing that is not in the job's directory.
pub struct Server {
    library: Library,
    job: Job,
}

/// What calls back finds its server here: the library passes no context of ours.
static STATE: OnceLock<State> = OnceLock::new();

struct State {
    tell: Box<dyn Fn(Event) + Send + Sync>,
    n_tasks: u32,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
}

/// Who is to be called with an answer. The address is the library's, and is only ever given back to it.
struct Waiting {
    modex: Modex,
    context: usize,
}

/// `pmix_server_module_t`: functions in the order of the library's header; those that are null are not offered.
#[repr(C)]
struct Module {
    client_connected: Option<unsafe extern "C" fn(*const Process, *mut c_void, Done, *mut c_void) -> Status>,
    client_finalized: Option<unsafe extern "C" fn(*const Process, *mut c_void, Done, *mut c_void) -> Status>,
    abort: Option<
        unsafe extern "C" fn(
            *const Process,
            *mut c_void,
            c_int,
            *const c_char,
            *mut Process,
            usize,
            Done,
            *mut c_void,
        ) -> Status,
    >,
    fence: Option<
        unsafe extern "C" fn(
            *const Process,
            usize,
            *const layout::Info,
            usize,
            *mut c_char,
            usize,
            Modex,
            *mut c_void,
        ) -> Status,
    >,
    direct_modex:
        Option<unsafe extern "C" fn(*const Process, *const layout::Info, usize, Modex, *mut c_void) -> Status>,
    /// publish to client_connected2, and room for what later versions add.
    others: [*mut c_void; 40],
}

impl Server {
    /// Starts it and makes the step known to it. `tell` is called from the library's own thread.
    pub fn start(job: Job, tell: impl Fn(Event) + Send + Sync + 'static) -> Result<Self, String> {
        let library = Library::load()?;
        let n_tasks = job.nodes.iter().map(|node| node.ranks.len() as u32).sum();
        let state = State { tell: Box::new(tell), n_tasks, next: AtomicU64::new(1), waiting: Mutex::default() };
        if STATE.set(state).is_err() {
            return Err("this process has a PMIx server already".into());
        }
        let server = Server { library, job };
        server.init()?;
        server.register()?;
        Ok(server)
    }

    pub fn version(&self) -> &Version {
        &self.library.version
    }

    fn init(&self) -> Result<(), String> {
        let directory = self.job.directory.display().to_string();
        let mut infos = Infos::default();
        infos.text("pmix.srvr.tmpdir", &directory);
        infos.text("pmix.srv.nspace", &format!("{}.server", self.job.namespace));
        infos.rank("pmix.srv.rank", self.job.here as u32);
        // Nodes that share a machine are told apart by their own names.
        infos.text("pmix.hname", &self.here().name);
        let module = Box::leak(Box::new(Module {
            client_connected: Some(on_connected),
            client_finalized: Some(on_finalized),
            abort: Some(on_abort),
            fence: Some(on_fence),
            direct_modex: Some(on_direct_modex),
            others: [std::ptr::null_mut(); 40],
        }));
        // SAFETY: the module lives for ever, the list until the call returns.
        unsafe {
            let status = (self.library.server_init)((&raw mut *module).cast(), infos.as_mut_ptr(), infos.len());
            self.library.check("PMIx_server_init", status)?;
        }
        Ok(())
    }

    fn register(&self) -> Result<(), String> {
        let namespace = c_string(&self.job.namespace)?;
        let mut infos = self.describe()?;
        let n_local = self.here().ranks.len() as c_int;
        // SAFETY: without a function to call back, the library is done with the list when it returns.
        unsafe {
            let status = (self.library.register_nspace)(
                namespace.as_ptr(),
                n_local,
                infos.as_mut_ptr(),
                infos.len(),
                None,
                std::ptr::null_mut(),
            );
            self.library.check("PMIx_server_register_nspace", status)?;
        }
        for rank in &self.here().ranks {
            let process = Process::new(&self.job.namespace, *rank);
            // SAFETY: as above.
            let status = unsafe {
                let null = std::ptr::null_mut;
                (self.library.register_client)(&process, self.job.uid, self.job.gid, null(), None, null())
            };
            self.library.check("PMIx_server_register_client", status)?;
        }
        Ok(())
    }

    fn here(&self) -> &Node {
        &self.job.nodes[self.job.here]
    }

    /// All that a task can ask about the step without asking another.
    fn describe(&self) -> Result<Infos, String> {
        let (job, here) = (&self.job, self.here());
        let n_tasks: u32 = job.nodes.iter().map(|node| node.ranks.len() as u32).sum();
        let directory = job.directory.display().to_string();
        let list = |ranks: &[u32]| ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut infos = Infos::default();
        infos.text("pmix.jobid", &job.id);
        infos.flag("pmix.spawned", false);
        for size in ["pmix.univ.size", "pmix.job.size", "pmix.max.size", "pmix.app.size"] {
            infos.number(size, n_tasks);
        }
        infos.number("pmix.job.napps", 1);
        infos.rank("pmix.offset", 0);
        infos.number("pmix.local.size", here.ranks.len() as u32);
        infos.number("pmix.node.size", here.ranks.len() as u32);
        infos.number("pmix.num.nodes", job.nodes.len() as u32);
        infos.number("pmix.nodeid", job.here as u32);
        infos.rank("pmix.lldr", here.ranks.first().copied().unwrap_or(0));
        infos.text("pmix.lpeers", &list(&here.ranks));
        infos.text("pmix.tmpdir", &directory);
        infos.text("pmix.nsdir", &directory);
        infos.flag("pmix.tdir.rmclean", true);
        let names: Vec<&str> = job.nodes.iter().map(|node| node.name.as_str()).collect();
        let ranks: Vec<String> = job.nodes.iter().map(|node| list(&node.ranks)).collect();
        self.add_map(&mut infos, "pmix.nmap", self.library.generate_regex, &names.join(","))?;
        self.add_map(&mut infos, "pmix.pmap", self.library.generate_ppn, &ranks.join(";"))?;
        for (node_id, node) in job.nodes.iter().enumerate() {
            for (local, rank) in node.ranks.iter().enumerate() {
                let mut task = Infos::default();
                task.rank("pmix.rank", *rank);
                task.number("pmix.appnum", 0);
                task.rank("pmix.aldr", 0);
                task.rank("pmix.grank", *rank);
                task.rank("pmix.apprank", *rank);
                task.small("pmix.lrank", local as u16);
                task.small("pmix.nrank", local as u16);
                task.text("pmix.hname", &node.name);
                task.number("pmix.nodeid", node_id as u32);
                if node_id == job.here {
                    task.text("pmix.pdir", &directory);
                }
                infos.list("pmix.pdata", task);
            }
        }
        Ok(infos)
    }

    fn add_map(
        &self,
        infos: &mut Infos,
        key: &str,
        generate: unsafe extern "C" fn(*const c_char, *mut *mut c_char) -> Status,
        input: &str,
    ) -> Result<(), String> {
        let input = c_string(input)?;
        let mut map = std::ptr::null_mut();
        // From version 4 on a map may be compressed, and only the library knows its length.
        let kind = if self.library.version.major >= 4 { layout::REGEX } else { layout::TEXT };
        // SAFETY: the library makes the map, copies it into the value, and it is freed as it was made.
        unsafe {
            self.library.check("PMIx_generate_regex", generate(input.as_ptr(), &mut map))?;
            let status = (self.library.value_load)(infos.empty(key), map.cast(), kind);
            libc::free(map.cast());
            self.library.check("PMIx_Value_load", status)
        }
    }

    /// What the environment of a task must have.
    pub fn variables(&self, rank: u32) -> Result<Vec<(String, String)>, String> {
        let process = Process::new(&self.job.namespace, rank);
        let mut environment: *mut *mut c_char = std::ptr::null_mut();
        let mut variables = Vec::new();
        // SAFETY: the library makes a list of strings that is ended by a null pointer; all of it is freed here.
        unsafe {
            self.library.check("PMIx_server_setup_fork", (self.library.setup_fork)(&process, &mut environment))?;
            let mut entry = environment;
            while !entry.is_null() && !(*entry).is_null() {
                if let Some((name, value)) = text(*entry).split_once('=') {
                    variables.push((name.to_owned(), value.to_owned()));
                }
                libc::free((*entry).cast());
                entry = entry.add(1);
            }
            libc::free(environment.cast());
        }
        Ok(variables)
    }

    /// Answers `Fence` or `Get`. An answer that nobody waits for is dropped.
    pub fn answer(&self, number: u64, status: i32, data: Vec<u8>) {
        let Some(waiting) = state().and_then(|state| lock(&state.waiting).remove(&number)) else { return };
        answer(waiting, status, data);
    }

    /// Looks for what a task here has put; answered with `Got`.
    pub fn fetch(&self, number: u64, rank: u32) {
        let process = Process::new(&self.job.namespace, rank);
        let context = Box::into_raw(Box::new(number)).cast();
        // SAFETY: the library copies the name, and calls back once with the context unless it refuses.
        let status = unsafe { (self.library.dmodex_request)(&process, on_response, context) };
        if status != SUCCESS {
            // SAFETY: it was made above and nobody else has it.
            drop(unsafe { Box::from_raw(context.cast::<u64>()) });
            tell(Event::Got { number, status, data: Vec::new() });
        }
    }
}

fn state() -> Option<&'static State> {
    STATE.get()
}

fn tell(event: Event) {
    if let Some(state) = state() {
        (state.tell)(event);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers who waits, and gives the number of it.
fn wait(state: &State, modex: Modex, context: *mut c_void) -> u64 {
    let number = state.next.fetch_add(1, Ordering::Relaxed);
    lock(&state.waiting).insert(number, Waiting { modex, context: context as usize });
    number
}

fn answer(waiting: Waiting, status: i32, data: Vec<u8>) {
    let Some(modex) = waiting.modex else { return };
    let context = waiting.context as *mut c_void;
    // SAFETY: the library waits for exactly this call; the data lives until it is released.
    unsafe {
        if status != SUCCESS || data.is_empty() {
            return modex(status, std::ptr::null(), 0, context, None, std::ptr::null_mut());
        }
        let data = Box::new(data);
        let (bytes, size) = (data.as_ptr().cast(), data.len());
        modex(status, bytes, size, context, Some(on_release), Box::into_raw(data).cast());
    }
}

unsafe extern "C" fn on_release(data: *mut c_void) {
    // SAFETY: `answer` made it, and the library releases it once.
    drop(unsafe { Box::from_raw(data.cast::<Vec<u8>>()) });
}

unsafe extern "C" fn on_connected(process: *const Process, _: *mut c_void, done: Done, context: *mut c_void) -> Status {
    // SAFETY: the library names a process, and waits for its own function with its own context.
    unsafe { note(process, |rank| Event::Came { rank }, done, context) }
}

/// The task waits until this is answered, so whoever is told hears of it before the task's end.
unsafe extern "C" fn on_finalized(process: *const Process, _: *mut c_void, done: Done, context: *mut c_void) -> Status {
    // SAFETY: as above.
    unsafe { note(process, |rank| Event::Left { rank }, done, context) }
}

/// # Safety
/// What the library has passed, unchanged.
unsafe fn note(process: *const Process, event: fn(u32) -> Event, done: Done, context: *mut c_void) -> Status {
    // SAFETY: as the caller promised.
    unsafe {
        if let Some(process) = process.as_ref() {
            tell(event(process.rank));
        }
        if let Some(done) = done {
            done(SUCCESS, context);
        }
    }
    SUCCESS
}

unsafe extern "C" fn on_abort(
    process: *const Process,
    _: *mut c_void,
    status: c_int,
    words: *const c_char,
    _: *mut Process,
    _: usize,
    done: Done,
    context: *mut c_void,
) -> Status {
    // SAFETY: the library passes a process and a string, either of which may be missing.
    unsafe {
        let rank = process.as_ref().map_or(0, |process| process.rank);
        let words = text(words);
        tell(Event::Abort { rank, text: if words.is_empty() { format!("status {status}") } else { words } });
        if let Some(done) = done {
            done(SUCCESS, context);
        }
    }
    SUCCESS
}

unsafe extern "C" fn on_fence(
    processes: *const Process,
    n_processes: usize,
    _: *const layout::Info,
    _: usize,
    data: *mut c_char,
    size: usize,
    modex: Modex,
    context: *mut c_void,
) -> Status {
    let Some(state) = state() else { return NOT_FOUND };
    // SAFETY: the library passes lists of these lengths; null only where they are empty.
    let (named, data) = unsafe {
        let named: &[Process] =
            if processes.is_null() { &[] } else { std::slice::from_raw_parts(processes, n_processes) };
        let data = if data.is_null() { &[] } else { std::slice::from_raw_parts(data.cast::<u8>(), size) };
        (named, data.to_vec())
    };
    let mut ranks: Vec<u32> = match named.iter().any(|process| process.rank == WILDCARD) || named.is_empty() {
        true => (0..state.n_tasks).collect(),
        false => named.iter().map(|process| process.rank).collect(),
    };
    ranks.sort_unstable();
    ranks.dedup();
    let number = wait(state, modex, context);
    tell(Event::Fence { number, ranks, data });
    SUCCESS
}

unsafe extern "C" fn on_direct_modex(
    process: *const Process,
    _: *const layout::Info,
    _: usize,
    modex: Modex,
    context: *mut c_void,
) -> Status {
    // SAFETY: the library names a process.
    let (Some(state), Some(process)) = (state(), unsafe { process.as_ref() }) else { return NOT_FOUND };
    let number = wait(state, modex, context);
    tell(Event::Get { number, rank: process.rank });
    SUCCESS
}

unsafe extern "C" fn on_response(status: Status, data: *mut c_char, size: usize, context: *mut c_void) {
    // SAFETY: the context is the number that `fetch` gave, and comes back once; the data is the library's until this returns.
    unsafe {
        let number = *Box::from_raw(context.cast::<u64>());
        let data = if data.is_null() { &[] } else { std::slice::from_raw_parts(data.cast::<u8>(), size) };
        tell(Event::Got { number, status, data: data.to_vec() });
    }
}
