//! System calls that a process keeps, as a program that the kernel runs before each call. All others fail with EPERM;
//! calls that are newer than this list fail with ENOSYS, so that a C library goes back to older ones.
use std::collections::BTreeMap;
use std::io;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// The first number that Linux 6.12 does not know.
const FIRST_UNKNOWN: u32 = 463;
/// Numbers from here on belong to another interface of the same machine.
const OTHER_INTERFACE: u32 = 0x4000_0000;

/// Where the kernel shows the number of a call, its machine, and the lower half of its first argument.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const ARGUMENT: u32 = 16;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// When a call is allowed.
#[derive(Clone, Debug, PartialEq)]
pub enum Terms {
    Always,
    /// One argument, masked, is one of these. Only its lower half is looked at: the kernel, too, takes no more of
    /// flags, commands and process numbers.
    If {
        argument: u32,
        mask: u32,
        values: Vec<u32>,
    },
    /// As if the kernel were too old for it.
    Unknown,
}

/// The calls that are left.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    allowed: BTreeMap<u32, Terms>,
}

impl CallFilter {
    pub fn allow(mut self, calls: &[libc::c_long]) -> Self {
        self.allowed.extend(calls.iter().map(|number| (*number as u32, Terms::Always)));
        self
    }

    pub fn allow_if(mut self, call: libc::c_long, terms: Terms) -> Self {
        self.allowed.insert(call as u32, terms);
        self
    }

    /// For all threads of this process, and for good. Without filters in the kernel nothing happens.
    pub fn install(&self) -> io::Result<()> {
        let Some(architecture) = ARCHITECTURE.filter(|_| is_available()) else { return Ok(()) };
        let mut program = self.program(architecture);
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: the program outlives the call, which copies it; the kernel checks it.
        let done = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                &raw const filter,
            )
        };
        match done {
            0 => Ok(()),
            // The number of a thread that could not follow.
            1.. => Err(io::Error::other("a thread has a filter of its own")),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// One chain: each call's number, and behind it what follows if that is the number.
    fn program(&self, architecture: u32) -> Vec<libc::sock_filter> {
        let step = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
        let unless = |code, k, n_skipped: usize| libc::sock_filter { code, jt: 0, jf: n_skipped as u8, k };
        let mut program = vec![
            step(LOAD, MACHINE),
            libc::sock_filter { code: IF_EQUAL, jt: 1, jf: 0, k: architecture },
            step(RETURN, REFUSE),
            step(LOAD, NUMBER),
            unless(IF_AT_LEAST, OTHER_INTERFACE, 1),
            step(RETURN, REFUSE),
        ];
        for (number, terms) in &self.allowed {
            let body = match terms {
                Terms::Always => vec![step(RETURN, ALLOW)],
                Terms::Unknown => vec![step(RETURN, UNKNOWN)],
                Terms::If { argument, mask, values } => {
                    let mut body = vec![step(LOAD, ARGUMENT + 8 * argument), step(AND, *mask)];
                    for value in values {
                        body.extend([unless(IF_EQUAL, *value, 1), step(RETURN, ALLOW)]);
                    }
                    body.push(step(RETURN, REFUSE));
                    body
                }
            };
            program.push(unless(IF_EQUAL, *number, body.len()));
            program.extend(body);
        }
        program.extend([unless(IF_AT_LEAST, FIRST_UNKNOWN, 1), step(RETURN, UNKNOWN), step(RETURN, REFUSE)]);
        program
    }
}

/// Whether this kernel has such filters.
pub fn is_available() -> bool {
    const GET_ACTION_AVAILABLE: libc::c_long = 2;
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one number.
    let known = unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAILABLE, 0, &raw const action) } == 0;
    known && ARCHITECTURE.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel would.
    fn judge(program: &[libc::sock_filter], architecture: u32, number: u32, arguments: [u32; 6]) -> u32 {
        let (mut at, mut held) = (0, 0u32);
        loop {
            let step = program[at];
            at += 1;
            let taken = match step.code {
                LOAD => {
                    held = match step.k {
                        NUMBER => number,
                        MACHINE => architecture,
                        offset => arguments[((offset - ARGUMENT) / 8) as usize],
                    };
                    continue;
                }
                AND => {
                    held &= step.k;
                    continue;
                }
                RETURN => return step.k,
                IF_EQUAL => held == step.k,
                IF_AT_LEAST => held >= step.k,
                code => panic!("no such step: {code}"),
            };
            at += usize::from(if taken { step.jt } else { step.jf });
        }
    }

    #[test]
    fn calls_outside_the_list_are_refused() {
        let masked = Terms::If { argument: 1, mask: 0xf0, values: vec![0x10, 0x20] };
        let filter = CallFilter::default().allow(&[1, 3, 300]).allow_if(7, masked).allow_if(8, Terms::Unknown);
        let program = filter.program(5);
        let of = |number, second| judge(&program, 5, number, [0, second, 0, 0, 0, 0]);
        for number in 0..FIRST_UNKNOWN {
            let expected = match number {
                1 | 3 | 300 => ALLOW,
                8 => UNKNOWN,
                _ => REFUSE,
            };
            assert_eq!(of(number, 0), expected, "{number}");
        }
        assert_eq!([0x1f, 0x20, 0x30, 0x0f].map(|second| of(7, second)), [ALLOW, ALLOW, REFUSE, REFUSE]);
        assert_eq!([FIRST_UNKNOWN, 5000].map(|number| of(number, 0)), [UNKNOWN, UNKNOWN]);
        assert_eq!(of(OTHER_INTERFACE + 1, 0), REFUSE);
        assert_eq!(judge(&program, 6, 1, [0; 6]), REFUSE, "of another machine");
    }
}
