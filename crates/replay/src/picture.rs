//! Outcomes as a picture (SVG): how busy the machine was, how many waited, and how long.
use crate::outcome::Outcome;
use crate::workload::Workload;

/// One outcome and what the reader calls it.
pub struct Shown<'a> {
    pub name: &'a str,
    pub outcome: &'a Outcome,
}

const COLOURS: [&str; 3] = ["#4c78a8", "#f58518", "#54a24b"];
const WIDTH: f64 = 960.0;
const PANEL: f64 = 200.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 56.0;
const TOP: f64 = 100.0;
const GAP: f64 = 60.0;
/// A curve has so many points.
const N_POINTS: usize = 480;

/// Where a panel stands, and what its axes mean.
struct Panel {
    top: f64,
    title: &'static str,
    x_end: f64,
    y_end: f64,
    /// Waits differ by orders of magnitude.
    is_logarithmic: bool,
}

pub fn draw(title: &str, workload: &Workload, shown: &[Shown]) -> String {
    let height = TOP + 3.0 * (PANEL + GAP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fbfbfd\"/>\n"
    );
    label(&mut out, LEFT, 28.0, 18, "start", "#1f2933", title);
    let mut x = LEFT;
    for (one, colour) in shown.iter().zip(COLOURS) {
        out.push_str(&format!("<rect x=\"{x}\" y=\"42\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n"));
        label(&mut out, x + 18.0, 52.0, 12, "start", "#1f2933", one.name);
        x += 40.0 + 8.0 * one.name.chars().count() as f64;
    }
    let end = shown.iter().flat_map(|one| &one.outcome.runs).map(|run| run.ended).max().unwrap_or(1).max(1) as f64;

    let busy: Vec<Vec<(f64, f64)>> = shown.iter().map(|one| busy(workload, one.outcome, end)).collect();
    let panel = Panel { top: TOP, title: "CPUs in use, %", x_end: end, y_end: 100.0, is_logarithmic: false };
    panel.draw(&mut out, &busy, hours_or_days(end));

    let waiting: Vec<Vec<(f64, f64)>> = shown.iter().map(|one| waiting(workload, one.outcome, end)).collect();
    let most = waiting.iter().flatten().map(|(_, n_jobs)| *n_jobs).fold(1.0, f64::max);
    let top = TOP + PANEL + GAP;
    let panel = Panel { top, title: "jobs waiting", x_end: end, y_end: most, is_logarithmic: false };
    panel.draw(&mut out, &waiting, hours_or_days(end));

    let waits: Vec<Vec<(f64, f64)>> = shown.iter().map(|one| waits(workload, one.outcome)).collect();
    let longest = waits.iter().flatten().map(|(wait, _)| *wait).fold(10.0, f64::max);
    let top = TOP + 2.0 * (PANEL + GAP);
    let title = "% of the jobs that waited no longer than …";
    let panel = Panel { top, title, x_end: longest, y_end: 100.0, is_logarithmic: true };
    panel.draw(&mut out, &waits, |secs| model::duration::show_short(secs as u64));
    out.push_str("</svg>\n");
    out
}

/// The mean over each piece of the time.
fn busy(workload: &Workload, outcome: &Outcome, end: f64) -> Vec<(f64, f64)> {
    let uses = outcome.runs.iter();
    let uses = uses.map(|run| (run.started, run.ended, f64::from(workload.requests[run.request].n_cpus)));
    let all = outcome.n_cpus.max(1) as f64;
    means(uses, end).into_iter().map(|(at, n_cpus)| (at, (100.0 * n_cpus / all).min(100.0))).collect()
}

fn waiting(workload: &Workload, outcome: &Outcome, end: f64) -> Vec<(f64, f64)> {
    means(outcome.runs.iter().map(|run| (workload.requests[run.request].submitted, run.started, 1.0)), end)
}

/// What intervals with a height add up to, as the mean over each of `N_POINTS` pieces of the time.
fn means(intervals: impl Iterator<Item = (u64, u64, f64)>, end: f64) -> Vec<(f64, f64)> {
    let width = end / N_POINTS as f64;
    let mut sums = vec![0.0; N_POINTS];
    for (from, until, height) in intervals {
        let (from, until) = (from as f64, until as f64);
        let first = (from / width) as usize;
        let last = ((until / width) as usize).min(N_POINTS - 1);
        for (piece, sum) in sums.iter_mut().enumerate().take(last + 1).skip(first) {
            let begin = piece as f64 * width;
            *sum += height * (until.min(begin + width) - from.max(begin)).max(0.0) / width;
        }
    }
    sums.into_iter().enumerate().map(|(piece, sum)| ((piece as f64 + 0.5) * width, sum)).collect()
}

fn waits(workload: &Workload, outcome: &Outcome) -> Vec<(f64, f64)> {
    let mut waits: Vec<u64> = outcome.runs.iter().map(|run| outcome.wait(workload, run)).collect();
    waits.sort_unstable();
    let n_waits = waits.len();
    let step = n_waits.div_ceil(N_POINTS).max(1);
    let points = (0..n_waits).step_by(step).chain(n_waits.checked_sub(1));
    points.map(|at| (waits[at].max(1) as f64, 100.0 * (at + 1) as f64 / n_waits as f64)).collect()
}

/// One unit for a whole axis that ends there.
fn hours_or_days(end: f64) -> fn(f64) -> String {
    match end {
        0.0..172_800.0 => |secs| format!("{:.1} h", secs / 3_600.0),
        _ => |secs| format!("{:.1} days", secs / 86_400.0),
    }
}

impl Panel {
    fn draw(&self, out: &mut String, curves: &[Vec<(f64, f64)>], show_x: impl Fn(f64) -> String) {
        let (right, bottom) = (WIDTH - RIGHT, self.top + PANEL);
        label(out, LEFT, self.top - 10.0, 12, "start", "#616e7c", self.title);
        for step in 0..=4 {
            let share = f64::from(step) / 4.0;
            let y = bottom - share * PANEL;
            out.push_str(&format!("<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{right}\" y2=\"{y}\" stroke=\"#e4e7eb\"/>\n"));
            label(out, LEFT - 8.0, y + 4.0, 11, "end", "#616e7c", &format!("{:.0}", self.y_end * share));
            let (x, value) = self.tick(share);
            label(out, x, bottom + 18.0, 11, "middle", "#616e7c", &show_x(value));
        }
        for (curve, colour) in curves.iter().zip(COLOURS) {
            let points: Vec<String> = curve
                .iter()
                .map(|(x, y)| format!("{:.1},{:.1}", self.x(*x), bottom - (y / self.y_end).min(1.0) * PANEL))
                .collect();
            let points = points.join(" ");
            out.push_str(&format!(
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-linejoin=\"round\"/>\n"
            ));
        }
    }

    fn x(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => value.max(1.0).ln() / self.x_end.ln(),
            false => value / self.x_end,
        };
        LEFT + share * (WIDTH - RIGHT - LEFT)
    }

    fn tick(&self, share: f64) -> (f64, f64) {
        let value = if self.is_logarithmic { self.x_end.powf(share) } else { self.x_end * share };
        (self.x(value), value)
    }
}

fn label(out: &mut String, x: f64, y: f64, size: u32, anchor: &str, colour: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    out.push_str(&format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>\n"
    ));
}
