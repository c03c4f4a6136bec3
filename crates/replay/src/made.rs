//! Workloads that nobody ran: days and nights, many small jobs and few wide ones, run times over five orders of magnitude, and
//! users who ask for far more time than they need. The same seed makes the same workload.
use crate::workload::{Request, Workload};

#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    pub seed: u64,
    pub n_requests: usize,
    pub n_cpus: u32,
    /// Work asked for, of what the machine could do in that time.
    pub load: f64,
}

const DAY: f64 = 86_400.0;
/// What people type as a limit, in minutes.
const USUAL_LIMITS: [u64; 12] = [5, 10, 15, 30, 60, 120, 240, 480, 720, 1_440, 2_880, 4_320];
const N_USERS: u64 = 40;

pub fn workload(recipe: &Recipe) -> Workload {
    let mut chance = Chance(recipe.seed);
    let mut requests: Vec<Request> = Vec::with_capacity(recipe.n_requests);
    let mut at = 0.0;
    for number in 1..=recipe.n_requests {
        at += chance.interval(at);
        // A few users submit most of the jobs.
        let user = ((chance.share() * chance.share()) * N_USERS as f64) as u64;
        let n_cpus = chance.width(recipe.n_cpus);
        let run_time = chance.run_time(n_cpus, recipe.n_cpus);
        requests.push(Request {
            name: number.to_string(),
            submitted: at as u64,
            n_cpus,
            run_time,
            limit: chance.limit(run_time),
            user: format!("{}", user + 1),
            account: format!("{}", user % 5 + 1),
            ..Default::default()
        });
    }
    let mut workload = Workload { requests, n_cpus: Some(recipe.n_cpus), ..Default::default() };
    let load = workload.load(u64::from(recipe.n_cpus));
    workload.compress(recipe.load / load);
    workload
}

/// As a file of the Standard Workload Format.
pub fn swf(workload: &Workload) -> String {
    let mut text = String::from("; Made by spur sim, not recorded\n");
    if let Some(n_cpus) = workload.n_cpus {
        text.push_str(&format!("; MaxProcs: {n_cpus}\n"));
    }
    for request in &workload.requests {
        let Request { name, submitted, n_cpus, run_time, limit, user, account, .. } = request;
        text.push_str(&format!(
            "{name} {submitted} -1 {run_time} {n_cpus} -1 -1 {n_cpus} {limit} -1 1 {user} {account} -1 1 -1 -1 -1\n"
        ));
    }
    text
}

/// All chance there is.
struct Chance(u64);

impl Chance {
    /// From 0 up to, but not including, 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Around 0, mostly within 1 of it.
    fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    /// Until the next submission; nights are four times as quiet as days.
    fn interval(&mut self, at: f64) -> f64 {
        let is_night = (at / DAY).fract() > 0.5;
        let mean = if is_night { 240.0 } else { 60.0 };
        -mean * (1.0 - self.share()).ln()
    }

    /// One in four is serial; of the others, most are powers of two.
    fn width(&mut self, n_cpus: u32) -> u32 {
        if self.share() < 0.25 {
            return 1;
        }
        let widest = f64::from(n_cpus).log2();
        let exponent = (0.3 + 0.7 * self.share() * self.share()) * widest;
        let exponent = if self.share() < 0.75 { exponent.round() } else { exponent };
        (exponent.exp2() as u32).clamp(1, n_cpus)
    }

    /// Seconds to days; wide ones are longer.
    fn run_time(&mut self, n_cpus: u32, most: u32) -> u64 {
        let width = f64::from(n_cpus).log2() / f64::from(most).log2().max(1.0);
        (6.5 + width + 2.0 * self.bell()).exp().clamp(1.0, 2.5 * DAY) as u64
    }

    /// Somebody's round number above what is needed.
    fn limit(&mut self, run_time: u64) -> u64 {
        let enough = run_time as f64 * (1.0 + 4.0 * self.share() * self.share());
        let usual = USUAL_LIMITS.iter().map(|minutes| minutes * 60).find(|limit| *limit as f64 >= enough);
        usual.unwrap_or(USUAL_LIMITS[USUAL_LIMITS.len() - 1] * 60).max(run_time)
    }
}
