//! Several hosts on one machine: network namespaces, each with an address of its own, joined by a switch that this process plays.
//!
//! Every frame goes through our hands, so any host can be cut off from any other, in one direction or both, and what is sent can
//! be late or lost. The kernel needs nothing but namespaces and `/dev/net/tun`.
use std::collections::{BinaryHeap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FRAME_MAX: usize = 1 << 16;
/// How often the threads look whether they are still wanted.
const LOOK: libc::c_int = 50;

pub struct Switch {
    /// Of the namespaces, in order.
    pub names: Vec<String>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    ports: Vec<OwnedFd>,
    rules: Mutex<Rules>,
    late: Mutex<BinaryHeap<Late>>,
    is_late: Condvar,
    is_over: AtomicBool,
}

/// What becomes of frames now.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// From one host to another.
    pub cuts: HashSet<(usize, usize)>,
    /// Of a thousand frames.
    pub n_lost: u64,
    /// Each is late by up to so much.
    pub delay: Duration,
    pub seed: u64,
}

struct Late {
    due: Instant,
    to: usize,
    frame: Vec<u8>,
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    /// The earliest first.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.due.cmp(&self.due)
    }
}

impl Switch {
    /// None, and why, where this machine cannot.
    pub fn new(n_hosts: usize) -> Result<Switch, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // SAFETY: geteuid cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Err("namespaces need root".into());
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let names: Vec<String> =
            (1..=n_hosts).map(|host| format!("spur-{}-{number}-{host}", std::process::id())).collect();
        let mut made = Made(Vec::new());
        let mut ports = Vec::new();
        for (host, name) in names.iter().enumerate() {
            ip(&format!("netns add {name}"))?;
            made.0.push(name.clone());
            ports.push(port(name).map_err(|error| format!("no tap device: {error}"))?);
            ip(&format!("-n {name} link set eth0 address {}", mac(host)))?;
            ip(&format!("-n {name} addr add {}/24 dev eth0", address(host)))?;
            ip(&format!("-n {name} link set eth0 up"))?;
            ip(&format!("-n {name} link set lo up"))?;
            for other in (0..n_hosts).filter(|other| *other != host) {
                ip(&format!(
                    "-n {name} neigh replace {} lladdr {} dev eth0 nud permanent",
                    address(other),
                    mac(other)
                ))?;
            }
        }
        let shared = Arc::new(Shared {
            ports,
            rules: Mutex::default(),
            late: Mutex::default(),
            is_late: Condvar::new(),
            is_over: AtomicBool::new(false),
        });
        let mut threads: Vec<_> = (0..n_hosts)
            .map(|host| {
                let shared = shared.clone();
                std::thread::spawn(move || shared.listen(host))
            })
            .collect();
        threads.push(std::thread::spawn({
            let shared = shared.clone();
            move || shared.deliver_late()
        }));
        made.0.clear();
        Ok(Switch { names, shared, threads })
    }

    pub fn set(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.shared.rules.lock().unwrap());
    }

    /// Nothing gets lost, nothing is late, all hear each other.
    pub fn heal(&self) {
        self.set(|rules| *rules = Rules { seed: rules.seed, ..Rules::default() });
    }

    /// This host hears nobody and nobody hears it.
    pub fn isolate(&self, host: usize) {
        let n_hosts = self.names.len();
        self.set(|rules| rules.cuts.extend((0..n_hosts).flat_map(|other| [(host, other), (other, host)])));
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.is_late.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        drop(Made(std::mem::take(&mut self.names)));
    }
}

/// Namespaces that go with this.
struct Made(Vec<String>);

impl Drop for Made {
    fn drop(&mut self) {
        self.0.iter().for_each(|name| drop(ip(&format!("netns del {name}"))));
    }
}

impl Shared {
    fn listen(&self, host: usize) {
        let mut buffer = vec![0; FRAME_MAX];
        while !self.is_over.load(Ordering::Relaxed) {
            let Some(length) = read_within(&self.ports[host], &mut buffer) else { continue };
            self.pass(host, &buffer[..length]);
        }
    }

    fn pass(&self, from: usize, frame: &[u8]) {
        // The last byte of the receiver's address is its number; anything else is for everybody.
        let Some(to) = frame.get(..6).map(|mac| usize::from(mac[5])) else { return };
        let everybody = 0..self.ports.len();
        let meant = everybody.filter(|host| *host != from && (to == *host + 1 || to > self.ports.len()));
        for to in meant {
            let mut rules = self.rules.lock().unwrap();
            if rules.cuts.contains(&(from, to)) || rules.dice() % 1000 < rules.n_lost {
                continue;
            }
            if rules.delay.is_zero() {
                drop(rules);
                write(&self.ports[to], frame);
                continue;
            }
            let late = rules.delay.mul_f64((rules.dice() % 1000) as f64 / 1000.0);
            drop(rules);
            self.late.lock().unwrap().push(Late { due: Instant::now() + late, to, frame: frame.to_vec() });
            self.is_late.notify_one();
        }
    }

    fn deliver_late(&self) {
        let mut late = self.late.lock().unwrap();
        while !self.is_over.load(Ordering::Relaxed) {
            let now = Instant::now();
            let wait = match late.peek() {
                Some(next) if next.due <= now => {
                    let next = late.pop().expect("just seen");
                    write(&self.ports[next.to], &next.frame);
                    continue;
                }
                Some(next) => next.due - now,
                None => Duration::from_millis(100),
            };
            late = self.is_late.wait_timeout(late, wait).unwrap().0;
        }
    }
}

impl Rules {
    fn dice(&mut self) -> u64 {
        // splitmix64
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
    }
}

pub fn address(host: usize) -> String {
    format!("10.77.0.{}", host + 1)
}

fn mac(host: usize) -> String {
    format!("02:00:00:00:00:{:02x}", host + 1)
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The other end of `eth0` in a namespace. A thread of its own goes there, and ends.
fn port(namespace: &str) -> io::Result<OwnedFd> {
    let home = File::open(format!("/var/run/netns/{namespace}"))?;
    std::thread::spawn(move || {
        // SAFETY: plain system calls on descriptors that are open; the request outlives the call.
        unsafe {
            if libc::setns(home.as_raw_fd(), libc::CLONE_NEWNET) != 0 {
                return Err(io::Error::last_os_error());
            }
            let port = libc::open(c"/dev/net/tun".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK);
            if port < 0 {
                return Err(io::Error::last_os_error());
            }
            let port = OwnedFd::from_raw_fd(port);
            let mut request: libc::ifreq = std::mem::zeroed();
            for (to, from) in request.ifr_name.iter_mut().zip(b"eth0") {
                *to = *from as libc::c_char;
            }
            request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
            if libc::ioctl(port.as_raw_fd(), libc::TUNSETIFF as _, &request) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(port)
        }
    })
    .join()
    .expect("it does not panic")
}

fn read_within(port: &OwnedFd, buffer: &mut [u8]) -> Option<usize> {
    let mut wanted = libc::pollfd { fd: port.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: both structures outlive the calls.
    unsafe {
        if libc::poll(&mut wanted, 1, LOOK) <= 0 {
            return None;
        }
        let length = libc::read(port.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len());
        usize::try_from(length).ok().filter(|length| *length > 0)
    }
}

/// A host that does not take it does not get it: so it is with networks.
fn write(port: &OwnedFd, frame: &[u8]) {
    // SAFETY: the frame outlives the call.
    unsafe { libc::write(port.as_raw_fd(), frame.as_ptr().cast(), frame.len()) };
}
