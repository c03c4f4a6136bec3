//! Progress bars of data on its way: pure text, and the drawing of several lines over themselves on a terminal.

use crate::staging_view::seconds_left;

const CELLS: usize = 24;
/// What a narrow window leaves of them: the figures say more than the cells.
const FEWER_CELLS: [usize; 2] = [12, 4];

/// One direction of one node, or one errand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    pub label: String,
    pub files: u64,
    /// Zero while the sources are still being counted.
    pub files_total: u64,
    pub bytes: u64,
    pub bytes_total: u64,
    pub bytes_per_second: u64,
    /// Errors, or what is waited for.
    pub note: String,
}

impl Bar {
    /// Of bytes, or of files where there are no bytes.
    fn share(&self) -> (u64, u64) {
        if self.bytes_total > 0 { (self.bytes, self.bytes_total) } else { (self.files, self.files_total) }
    }

    pub fn percent(&self) -> u64 {
        let (done, all) = self.share();
        (done.min(all) * 100).checked_div(all).unwrap_or_default()
    }

    /// Each is worth a line where lines are not drawn over themselves.
    fn step(&self) -> u64 {
        let in_trouble = if self.note.is_empty() { 0 } else { 100 };
        1 + self.percent() / 10 + in_trouble
    }

    fn seconds_left(&self) -> Option<u64> {
        let (files, bytes) = ((self.files, self.files_total), (self.bytes, self.bytes_total));
        seconds_left(files, bytes, self.bytes_per_second).filter(|_| self.bytes < self.bytes_total)
    }

    pub fn line(&self) -> String {
        self.line_of(CELLS, &[])
    }

    /// With as many cells as there is room for, then with as many figures; trouble is worth more than any of them.
    fn line_within(&self, columns: usize) -> String {
        let fits = |line: &String| line.chars().count() <= columns;
        let [narrow, narrowest] = FEWER_CELLS;
        if let Some(whole) = [CELLS, narrow, narrowest].map(|n_cells| self.line_of(n_cells, &[])).into_iter().find(fits)
        {
            return whole;
        }
        let note = self.shown_note();
        if !note.is_empty() {
            let head = self.head(narrowest);
            let n_room = columns.saturating_sub(head.chars().count() + 1);
            return format!("{head} {}", without_its_middle(&note, n_room));
        }
        let is_enough = |n_left_out: &usize| fits(&self.line_of(narrowest, &LEFT_OUT_FIRST[..*n_left_out]));
        let n_left_out = (0..LEFT_OUT_FIRST.len()).find(is_enough).unwrap_or(LEFT_OUT_FIRST.len());
        self.line_of(narrowest, &LEFT_OUT_FIRST[..n_left_out])
    }

    fn shown_note(&self) -> String {
        self.note.chars().filter(|each| !each.is_control()).take(120).collect()
    }

    /// Whose it is, and how much of it is done.
    fn head(&self, n_cells: usize) -> String {
        let label = &self.label;
        if self.files_total == 0 {
            return format!("{label} [{}]", " ".repeat(n_cells));
        }
        let (done, all) = self.share();
        let n_full = (done.min(all) as u128 * n_cells as u128 / u128::from(all.max(1))) as usize;
        let cells = format!("{}{}", "#".repeat(n_full), ".".repeat(n_cells - n_full));
        format!("{label} [{cells}] {:>3}%", self.percent())
    }

    fn line_of(&self, n_cells: usize, left_out: &[Figure]) -> String {
        let (mut text, note) = (self.head(n_cells), self.shown_note());
        if self.files_total == 0 {
            let what = if note.is_empty() { "counting" } else { &note };
            return format!("{text} {what}");
        }
        let figures = [Figure::Files, Figure::Bytes, Figure::Rate, Figure::TimeLeft];
        for figure in figures.into_iter().filter(|figure| !left_out.contains(figure)) {
            text.extend(self.figure(figure).map(|figure| format!("  {figure}")));
        }
        if !note.is_empty() {
            text.push_str(&format!("  {note}"));
        }
        text
    }

    /// None: there is nothing to say.
    fn figure(&self, figure: Figure) -> Option<String> {
        match figure {
            Figure::Files => Some(format!("{}/{} files", self.files, self.files_total)),
            Figure::Bytes => Some(format!("{}/{}", mover::human(self.bytes), mover::human(self.bytes_total))),
            Figure::Rate => {
                Some(self.bytes_per_second).filter(|rate| *rate > 0).map(|rate| format!("{}/s", mover::human(rate)))
            }
            Figure::TimeLeft => {
                self.seconds_left().map(|left| format!("eta {}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60))
            }
        }
    }
}

/// Begins with what was tried, and ends with why it did not work: a long path between them may go.
fn without_its_middle(text: &str, n_room: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= n_room {
        return text.to_owned();
    }
    let n_kept = n_room.saturating_sub(1);
    let n_first = n_kept / 4;
    let last = &letters[letters.len() - (n_kept - n_first)..];
    letters[..n_first].iter().chain(&['…']).chain(last).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    Files,
    Bytes,
    Rate,
    TimeLeft,
}

/// In a window too narrow for all: who waits wants to know for how long.
const LEFT_OUT_FIRST: [Figure; 4] = [Figure::Files, Figure::Rate, Figure::Bytes, Figure::TimeLeft];

/// What a window has room for.
#[derive(Clone, Copy, Debug)]
struct Window {
    columns: usize,
    rows: usize,
}

fn window() -> Window {
    let size = crate::output::window_size();
    let known = |count: u16| if count == 0 { usize::MAX } else { usize::from(count) };
    size.map_or(Window { columns: usize::MAX, rows: usize::MAX }, |size| Window {
        columns: known(size.ws_col),
        rows: known(size.ws_row),
    })
}

/// Lines that are drawn over themselves must neither wrap nor scroll away: they are cut, and what is done goes first.
fn fitted(indent: &str, heading: &str, bars: &[Bar], window: Window) -> Vec<String> {
    let mut lines: Vec<String> = Some(heading).filter(|line| !line.is_empty()).map(str::to_owned).into_iter().collect();
    // The cursor stands in a line of its own below.
    let n_room = window.rows.saturating_sub(lines.len() + 1).max(1);
    let n_columns = window.columns.saturating_sub(indent.chars().count());
    let line = |bar: &Bar| bar.line_within(n_columns);
    if bars.len() <= n_room {
        lines.extend(bars.iter().map(line));
    } else {
        let (open, done): (Vec<&Bar>, Vec<&Bar>) = bars.iter().partition(|bar| bar.percent() < 100);
        lines.extend(open.into_iter().chain(done).take(n_room - 1).map(line));
        lines.push(format!("and {} more", bars.len() + 1 - n_room));
    }
    let cut = |line: &String| format!("{indent}{line}").chars().take(window.columns).collect();
    lines.iter().map(cut).collect()
}

/// Several lines, drawn over themselves on a terminal; elsewhere a line is printed when it has moved by a tenth.
pub struct Screen {
    indent: &'static str,
    is_terminal: bool,
    n_drawn: usize,
    told: Vec<(String, u64)>,
}

impl Screen {
    pub fn new(indent: &'static str) -> Self {
        Screen { indent, is_terminal: crate::output::TalkStream::Stdout.is_terminal(), n_drawn: 0, told: Vec::new() }
    }

    /// False when nobody reads any more.
    pub fn show(&mut self, heading: &str, bars: &[Bar]) -> bool {
        if self.is_terminal {
            let mut text = String::new();
            if self.n_drawn > 0 {
                text.push_str(&format!("\x1b[{}A", self.n_drawn));
            }
            let lines = fitted(self.indent, heading, bars, window());
            for line in &lines {
                text.push_str(&format!("\r{}\x1b[K\n", model::plain_text::shown(line)));
            }
            // Nodes that are done are gone from the list.
            text.push_str("\x1b[J");
            self.n_drawn = lines.len();
            return crate::output::draw(&text);
        }
        let mut text = String::new();
        if !heading.is_empty() && self.is_news(heading, 0) {
            text.push_str(&format!("{}{heading}\n", self.indent));
        }
        for bar in bars {
            if self.is_news(&bar.label, bar.step()) {
                text.push_str(&format!("{}{}\n", self.indent, bar.line()));
            }
        }
        text.is_empty() || crate::output::print(&text)
    }

    fn is_news(&mut self, label: &str, step: u64) -> bool {
        match self.told.iter_mut().find(|(known, _)| known == label) {
            Some((_, last)) if *last == step => false,
            Some((_, last)) => {
                *last = step;
                true
            }
            None => {
                self.told.push((label.to_owned(), step));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moving() -> Bar {
        Bar {
            label: "n1 in ".into(),
            files: 30,
            files_total: 80,
            bytes: 3 << 20,
            bytes_total: 12 << 20,
            bytes_per_second: 1 << 20,
            note: String::new(),
        }
    }

    #[test]
    fn a_bar_says_how_far_how_fast_and_how_long_still() {
        let line = "n1 in  [######..................]  25%  30/80 files  3MiB/12MiB  1MiB/s  eta 0:00:09";
        assert_eq!(moving().line(), line);
        assert_eq!(Bar { label: "n2".into(), ..Bar::default() }.line(), "n2 [                        ] counting");
        let refused = Bar { label: "n2".into(), note: "buffer has 32MiB".into(), ..Bar::default() };
        assert_eq!(refused.line(), "n2 [                        ] buffer has 32MiB", "it counts no more");
        assert_ne!(refused.step(), Bar::default().step());
        let empty_files = Bar { files: 1, files_total: 2, note: "no\nspace".into(), ..Bar::default() };
        assert_eq!(empty_files.line(), " [############............]  50%  1/2 files  0B/0B  nospace");
    }

    #[test]
    fn what_is_drawn_fits_the_window() {
        let bar = |number: u64| Bar { label: format!("n{number}"), files: number, files_total: 4, ..Bar::default() };
        let bars: Vec<Bar> = (0..=4).rev().map(bar).collect();
        let wide = fitted("  ", "JobId=7", &bars, Window { columns: usize::MAX, rows: 7 });
        assert_eq!(wide.len(), 6);
        assert!(wide[0] == "  JobId=7" && wide[1].starts_with("  n4 [####") && wide[1].ends_with("0B/0B"));
        let small = fitted("", "JobId=7", &bars, Window { columns: 12, rows: 5 });
        assert_eq!(small, ["JobId=7", "n3 [###.]  7", "n2 [##..]  5", "and 3 more"]);
        let at_eighty = fitted("", "", &[moving()], Window { columns: 80, rows: 5 });
        assert_eq!(at_eighty, ["n1 in  [###.........]  25%  30/80 files  3MiB/12MiB  1MiB/s  eta 0:00:09"]);
        for (columns, line) in [
            (60, "n1 in  [#...]  25%  3MiB/12MiB  1MiB/s  eta 0:00:09"),
            (45, "n1 in  [#...]  25%  3MiB/12MiB  eta 0:00:09"),
            (40, "n1 in  [#...]  25%  eta 0:00:09"),
            (20, "n1 in  [#...]  25%"),
        ] {
            assert_eq!(fitted("", "", &[moving()], Window { columns, rows: 5 }), [line], "{columns}");
        }
        let in_trouble = Bar { note: "cannot write".into(), ..moving() };
        let line = "n1 in  [#...]  25% cannot write";
        assert_eq!(fitted("", "", &[in_trouble], Window { columns: 46, rows: 5 }), [line]);
        let full = "cannot write /proj/results/2026/november/run-17/out.h5: No space left on device; waiting for space";
        let full = Bar { note: full.into(), ..moving() };
        let line = "n1 in  [#...]  25% cannot write /p…5: No space left on device; waiting for space";
        assert_eq!(fitted("", "", &[full], Window { columns: 80, rows: 5 }), [line]);
        assert!(fitted("", "", &bars, Window { columns: 80, rows: 1 }).len() == 1);
    }
}
