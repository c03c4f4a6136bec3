//! Sets of array task numbers, kept as runs so that a million tasks cost as much as one.

use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::decode_work::{self, TooMuchWork};

/// The largest task number; Slurm's `MaxArraySize` can be no larger.
pub const TASK_MAX: u32 = 4_000_000;
/// As nouns are encoded, a set is told from other lists by this name.
pub(crate) const TASK_SET: &str = "TaskSet";
/// So many numbers of strides may cross other ranges: each of them is put in by itself.
const CROSSING_MOST: u32 = 65_536;
/// Slurm shows a stride only of so many numbers, and only when they span more than this.
const STRIDE_LEN_MIN: u32 = 6;
const STRIDE_SPAN_MIN: u32 = 10;

/// A set of task numbers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "Vec<(u32, u32, u32)>")]
pub struct TaskSet {
    /// Runs by their first number. Their spans never overlap.
    runs: BTreeMap<u32, Run>,
    len: u32,
}

/// The numbers from the run's key up to and including `last`, `step` apart; a single number has step 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    last: u32,
    step: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayError {
    Invalid(String),
    /// A task number that no array can have.
    TooLarge(String),
    /// Strides that cross other ranges at too many places.
    TooCrossed(String),
}

impl fmt::Display for ArrayError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text) => write!(out, "Invalid job array specification \"{text}\""),
            Self::TooLarge(text) => {
                write!(out, "Invalid job array specification \"{text}\": task numbers end at {TASK_MAX}")
            }
            Self::TooCrossed(text) => {
                write!(out, "Invalid job array specification \"{text:.64}\": its strides cross each other too often")
            }
        }
    }
}

impl std::error::Error for ArrayError {}

/// Reads `--array`: `1-5,7,10-20:2%4`, the tasks and how many may run at once (`%0`: no limit).
pub fn parse_array(text: &str) -> Result<(TaskSet, Option<u32>), ArrayError> {
    let invalid = || ArrayError::Invalid(text.to_owned());
    let inner = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
    let (list, limit) = match inner.split_once('%') {
        Some((list, limit)) => (list, Some(number(limit).ok_or_else(invalid)?)),
        None => (inner, None),
    };
    let mut tasks = TaskSet::new();
    let mut n_crossing = CROSSING_MOST;
    for range in list.split(',').filter(|range| !range.is_empty()) {
        let (first, last, step) = parse_range(range).ok_or_else(invalid)?;
        if last > TASK_MAX {
            return Err(ArrayError::TooLarge(text.to_owned()));
        }
        if !tasks.insert_within(first, last, step, &mut n_crossing) {
            return Err(ArrayError::TooCrossed(text.to_owned()));
        }
    }
    if tasks.is_empty() {
        return Err(invalid());
    }
    Ok((tasks, limit.filter(|limit| *limit > 0)))
}

fn parse_range(range: &str) -> Option<(u32, u32, u32)> {
    let Some((first, rest)) = range.split_once('-') else {
        let task = number(range)?;
        return Some((task, task, 1));
    };
    let (last, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let (first, last, step) = (number(first)?, number(last)?, number(step)?);
    (first <= last && step > 0).then_some((first, last, step))
}

fn number(digits: &str) -> Option<u32> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

impl TaskSet {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u32> {
        self.runs.first_key_value().map(|(first, _)| *first)
    }

    /// The largest number.
    pub fn last(&self) -> Option<u32> {
        self.runs.last_key_value().map(|(_, run)| run.last)
    }

    /// The distance of neighbours, if it is the same throughout; 1 for a single task.
    pub fn step(&self) -> Option<u32> {
        let (first, last) = (self.first()?, self.last()?);
        let mut numbers = self.iter();
        let step = numbers.nth(1).map_or(1, |second| second - first);
        // The counts agree for a stride, and then one look at each number tells; few sets get that far.
        if u64::from(last - first) != u64::from(self.len - 1) * u64::from(step) {
            return None;
        }
        let regular = |(&start, run): (&u32, &Run)| {
            (start - first).is_multiple_of(step) && (start == run.last || run.step.is_multiple_of(step))
        };
        self.runs.iter().all(regular).then_some(step)
    }

    pub fn contains(&self, task: u32) -> bool {
        self.run_around(task).is_some_and(|(first, run)| (task - first).is_multiple_of(run.step))
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs.iter().flat_map(|(&first, run)| (first..=run.last).step_by(run.step as usize))
    }

    /// Takes the smallest number out.
    pub fn pop_first(&mut self) -> Option<u32> {
        let (first, run) = self.runs.pop_first()?;
        self.put(first + run.step, run);
        self.len -= 1;
        Some(first)
    }

    /// Adds a number; false if it was there, or is larger than any task's.
    pub fn insert(&mut self, task: u32) -> bool {
        if task > TASK_MAX {
            return false;
        }
        if let Some((first, run)) = self.run_around(task) {
            if (task - first).is_multiple_of(run.step) {
                return false;
            }
            self.split(first, run, task - (task - first) % run.step + run.step);
        }
        self.len += 1;
        self.put(task, Run { last: task, step: 1 });
        self.join_neighbours(task);
        true
    }

    /// Adds `first`, `first + step` … up to `last` or the largest task number.
    pub fn insert_range(&mut self, first: u32, last: u32, step: u32) {
        self.insert_within(first, last, step, &mut u32::MAX.clone());
    }

    /// As `insert_range`, unless more numbers than `n_crossing` would have to be put in one by one; those that were are taken off.
    fn insert_within(&mut self, first: u32, last: u32, step: u32, n_crossing: &mut u32) -> bool {
        let last = last.min(TASK_MAX);
        if last < first || step == 0 {
            return true;
        }
        let last = last - (last - first) % step;
        let is_apart = self.run_around(first).is_none() && self.runs.range(first..=last).next().is_none();
        if is_apart {
            let run = Run { last, step: if first == last { 1 } else { step } };
            self.len += (last - first) / run.step + 1;
            self.put(first, run);
            self.join_neighbours(first);
            return true;
        }
        if step > 1 {
            let n_numbers = (last - first) / step + 1;
            if n_numbers > *n_crossing {
                return false;
            }
            *n_crossing -= n_numbers;
            for task in (first..=last).step_by(step as usize) {
                self.insert(task);
            }
            return true;
        }
        // A gapless range swallows all that lies in it.
        self.remove_span(first, last);
        self.insert_within(first, last, 1, n_crossing)
    }

    /// Takes a number out; false if it was not there.
    pub fn remove(&mut self, task: u32) -> bool {
        if !self.contains(task) {
            return false;
        }
        self.remove_span(task, task);
        true
    }

    /// Takes out all of `others`.
    pub fn remove_all(&mut self, others: &TaskSet) {
        let common: Vec<(u32, Run)> = self.common_runs(others).collect();
        for (first, gone) in common {
            let (_, own) = self.run_around(first).expect("what is common is here");
            if first == gone.last || gone.step == own.step {
                self.remove_span(first, gone.last);
            } else if gone.step == 2 * own.step {
                // Every other number goes: those between stay as one run.
                self.remove_span(first, gone.last);
                self.len += (gone.last - first) / gone.step;
                self.put(first + own.step, Run { last: gone.last - own.step, step: gone.step });
            } else {
                for task in (first..=gone.last).step_by(gone.step as usize) {
                    self.remove(task);
                }
            }
        }
    }

    /// The numbers that are in both. Costs as much as there are runs in the one and, where these lie, in the other.
    pub fn intersection(&self, others: &TaskSet) -> TaskSet {
        let mut both = TaskSet::new();
        self.common_runs(others).for_each(|(first, run)| both.insert_range(first, run.last, run.step));
        both
    }

    /// As [`TaskSet::intersection`], where only counts whether there is any.
    pub fn intersects(&self, others: &TaskSet) -> bool {
        self.common_runs(others).next().is_some()
    }

    /// What each of these runs has in common with each of the other set's, in order.
    fn common_runs(&self, others: &TaskSet) -> impl Iterator<Item = (u32, Run)> {
        self.runs.iter().flat_map(move |(&first, &run)| {
            let from = others.run_around(first).map_or(first, |(key, _)| key);
            let beside = others.runs.range(from..=run.last);
            beside.filter_map(move |(&key, &other)| common(first, run, key, other))
        })
    }

    pub fn n_runs(&self) -> usize {
        self.runs.len()
    }

    /// As `to_string`, cut with `...` as Slurm does for a buffer of `limit` bytes (`SLURM_BITSTR_LEN`); 0 is no limit.
    pub fn show_within(&self, limit: usize) -> String {
        // What is cut off is not even written.
        let mut text = self.listed(if limit == 0 { usize::MAX } else { limit });
        if limit > 0 && text.len() + 3 > limit {
            text.truncate(limit.saturating_sub(4));
            text.push_str(&"..."[..limit.min(4) - 1]);
        }
        text
    }

    /// Takes out every number from `low` to `high`.
    fn remove_span(&mut self, low: u32, high: u32) {
        if let Some((first, run)) = self.run_around(low)
            && first < low
        {
            self.split(first, run, first + (low - first).div_ceil(run.step) * run.step);
        }
        while let Some((&first, &run)) = self.runs.range(low..=high).next() {
            self.runs.remove(&first);
            let gone = (run.last.min(high) - first) / run.step + 1;
            self.len -= gone;
            self.put(first + gone * run.step, run);
        }
    }

    /// The run whose span holds this number.
    fn run_around(&self, task: u32) -> Option<(u32, Run)> {
        let (&first, &run) = self.runs.range(..=task).next_back()?;
        (task <= run.last).then_some((first, run))
    }

    /// Cuts a run so that a new one starts at `at`, one of its numbers after the first, or the one after its last.
    fn split(&mut self, first: u32, run: Run, at: u32) {
        self.put(first, Run { last: at - run.step, step: run.step });
        self.put(at, run);
    }

    /// Stores a run, unless nothing of it is left.
    fn put(&mut self, first: u32, run: Run) {
        if first <= run.last {
            let step = if first == run.last { 1 } else { run.step };
            self.runs.insert(first, Run { last: run.last, step });
        }
    }

    /// Makes one run of this one and those beside it where their numbers go on alike.
    fn join_neighbours(&mut self, first: u32) {
        let last = self.runs[&first].last;
        if let Some(next) = self.runs.range(last + 1..).next().map(|(&key, _)| key) {
            self.join(first, next);
        }
        if let Some((&previous, _)) = self.runs.range(..first).next_back() {
            self.join(previous, first);
        }
    }

    fn join(&mut self, left: u32, right: u32) {
        let (before, after) = (self.runs[&left], self.runs[&right]);
        let step = right - before.last;
        let goes_on = |first: u32, run: Run| first == run.last || run.step == step;
        if goes_on(left, before) && goes_on(right, after) {
            self.runs.remove(&right);
            self.runs.insert(left, Run { last: after.last, step });
        }
    }
}

/// Equal when the same numbers are in both, however they got there.
impl PartialEq for TaskSet {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && (self.runs == other.runs || self.iter().eq(other.iter()))
    }
}

impl Eq for TaskSet {}

impl FromIterator<u32> for TaskSet {
    fn from_iter<I: IntoIterator<Item = u32>>(tasks: I) -> Self {
        let mut set = TaskSet::new();
        for task in tasks {
            set.insert(task);
        }
        set
    }
}

/// The numbers that two runs share are a run, too.
fn common(first: u32, run: Run, other_first: u32, other: Run) -> Option<(u32, Run)> {
    let (low, high) = (first.max(other_first), run.last.min(other.last));
    // The steps of the wider one are tried in turn; after as many as the other's step is wide, they repeat.
    let ((start, step), (other_start, other_step)) = match run.step >= other.step {
        true => ((first, run.step), (other_first, other.step)),
        false => ((other_first, other.step), (first, run.step)),
    };
    let at_least = start + low.saturating_sub(start).div_ceil(step) * step;
    let turns = (at_least..=high).step_by(step as usize).take(other_step as usize);
    let found = turns.into_iter().find(|number| (number - other_start).is_multiple_of(other_step))?;
    let together = u64::from(step) / gcd(step, other_step) * u64::from(other_step);
    let n_more = u64::from(high - found) / together;
    let last = found + (n_more * together) as u32;
    Some((found, Run { last, step: if n_more == 0 { 1 } else { together as u32 } }))
}

fn gcd(a: u32, b: u32) -> u64 {
    if b == 0 { u64::from(a) } else { gcd(b, a % b) }
}

impl TaskSet {
    /// The list, up to the item with which it is longer than `limit` bytes; a stride of the whole set as `0-20:2`.
    fn listed(&self, limit: usize) -> String {
        let (Some(first), Some(last)) = (self.first(), self.last()) else { return String::new() };
        if self.len >= STRIDE_LEN_MIN
            && last - first > STRIDE_SPAN_MIN
            && let Some(step) = self.step()
            && step > 1
        {
            return format!("{first}-{last}:{step}");
        }
        let mut text = String::new();
        let mut spans = self.spans().peekable();
        while let Some((first, mut last)) = spans.next() {
            while let Some((_, further)) = spans.next_if(|(next, _)| *next == last + 1) {
                last = further;
            }
            let comma = if text.is_empty() { "" } else { "," };
            write!(text, "{comma}{first}").expect("a String takes everything");
            if last > first {
                write!(text, "-{last}").expect("a String takes everything");
            }
            if text.len() > limit {
                break;
            }
        }
        text
    }
}

impl fmt::Display for TaskSet {
    /// As in `42_[1-5,7]`, without the brackets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.listed(usize::MAX))
    }
}

impl TaskSet {
    /// Gapless stretches in order; neighbouring ones may touch.
    fn spans(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.runs.iter().flat_map(|(&first, run)| {
            let (length, distance) =
                if run.step == 1 { (run.last - first, usize::MAX) } else { (0, run.step as usize) };
            (first..=run.last).step_by(distance).map(move |start| (start, start + length))
        })
    }
}

impl TryFrom<Vec<(u32, u32, u32)>> for TaskSet {
    type Error = TooMuchWork;

    /// Runs as they are written never cross; those of a caller who wrote them by hand may.
    fn try_from(runs: Vec<(u32, u32, u32)>) -> Result<Self, TooMuchWork> {
        let mut set = TaskSet::new();
        let mut n_crossing = CROSSING_MOST;
        for (first, last, step) in runs {
            let before = n_crossing;
            if !set.insert_within(first, last, step, &mut n_crossing) {
                return Err(TooMuchWork);
            }
            decode_work::spend(u64::from(before - n_crossing))?;
        }
        Ok(set)
    }
}

impl Serialize for TaskSet {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        /// `(first, last, step)` each.
        struct RunList<'s>(&'s BTreeMap<u32, Run>);
        impl Serialize for RunList<'_> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_seq(self.0.iter().map(|(first, run)| (first, run.last, run.step)))
            }
        }
        to.serialize_newtype_struct(TASK_SET, &RunList(&self.runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[track_caller]
    fn tasks(text: &str) -> TaskSet {
        parse_array(text).expect("valid array").0
    }

    #[track_caller]
    fn check(text: &str, shown: &str) {
        assert_eq!(tasks(text).to_string(), shown);
    }

    #[test]
    fn arrays_are_read_and_shown_compressed() {
        check("1-5,7,10-20:2", "1-5,7,10,12,14,16,18,20");
        check("0-7", "0-7");
        check("7,3,5,4", "3-5,7");
        check("1-9:2", "1,3,5,7,9");
        check("0-20:2", "0-20:2");
        check("0-21:2", "0-20:2");
        check("0-1000000", "0-1000000");
        check("1,2,4-5", "1-2,4-5");
        check("0-100:2,1-99:2", "0-100");
        check("[1-3]", "1-3");
        check("1-3,2-8", "1-8");
        check("5-5:3", "5");
        check("0,20", "0,20");
        check("0-20:5", "0,5,10,15,20");
        check("0-20:4", "0-20:4");
        check("0-3,,5,", "0-3,5");
    }

    #[test]
    fn the_limit_is_read_beside_the_tasks() {
        assert_eq!(parse_array("0-7%4").map(|(tasks, limit)| (tasks.len(), limit)), Ok((8, Some(4))));
        assert_eq!(parse_array("0-7%0").map(|(_, limit)| limit), Ok(None));
        for text in ["", ",", "5-3", "1-5:0", "a", "1-5%", "1-5%x", "-1", "1--2", "1-2-3", "1:2", "1-5%2%3", "+1"] {
            assert_eq!(parse_array(text), Err(ArrayError::Invalid(text.into())), "{text}");
        }
        assert!(matches!(parse_array("0-4000001"), Err(ArrayError::TooLarge(_))));
    }

    #[test]
    fn crossing_strides_are_refused_before_they_cost() {
        let strides = (2..90).map(|step| format!("{step}-4000000:{step}"));
        let text = strides.collect::<Vec<_>>().join(",");
        assert!(text.len() < 2000);
        assert!(matches!(parse_array(&text), Err(ArrayError::TooCrossed(_))));
        let runs: Vec<(u32, u32, u32)> = (2..90).map(|step| (step, TASK_MAX, step)).collect();
        let bytes = crate::codec::encode(&runs);
        assert!(crate::codec::decode::<TaskSet>(&bytes).is_err());
        // What crosses a little is taken, also by whoever sends much of it: up to a bound for the whole message.
        let few: Vec<(u32, u32, u32)> = vec![(0, 1000, 2), (1, 999, 3)];
        let bytes = crate::codec::encode(&vec![few; 2000]);
        let sets = crate::codec::decode::<Vec<TaskSet>>(&bytes).unwrap();
        assert_eq!(sets[0].to_string(), tasks("0-1000:2,1-999:3").to_string());
        let bounded = decode_work::within(100_000, || crate::codec::decode::<Vec<TaskSet>>(&bytes));
        assert!(bounded.is_err());
    }

    #[test]
    fn common_numbers_are_found_run_by_run() {
        let common = |a: &str, b: &str| tasks(a).intersection(&tasks(b)).to_string();
        assert_eq!(common("0-4000000", "1-3999999:2"), "1-3999999:2");
        assert_eq!(common("0-4000000:2", "0-4000000:3"), "0-3999996:6");
        assert_eq!(common("0-4000000:2", "1-3999999:2"), "");
        assert!(!tasks("0-4000000:1999").intersects(&tasks("1-4000000:1999")));
        assert!(tasks("0-4000000:1999").intersects(&tasks("1-4000000:1998")));
    }

    #[test]
    fn list_that_is_cut_is_not_written_whole() {
        let set: TaskSet = tasks("0-3999998:2,3999999");
        assert_eq!(set.show_within(16), "0,2,4,6,8,10...");
        assert!(set.listed(16).len() < 32);
    }

    #[test]
    fn a_million_tasks_stay_one_run() {
        let mut set = tasks("0-1000000:1");
        assert_eq!((set.runs.len(), set.len()), (1, 1_000_001));
        for task in 0..1000 {
            assert_eq!(set.pop_first(), Some(task));
        }
        assert_eq!((set.runs.len(), set.len()), (1, 999_001));
        assert!(set.remove(5000) && !set.remove(5000) && set.insert(5000) && !set.insert(5000));
        assert_eq!((set.runs.len(), set.len()), (1, 999_001));
        let stride = tasks("0-1000000:2");
        assert_eq!((stride.runs.len(), stride.len(), stride.step()), (1, 500_001, Some(2)));
    }

    #[test]
    fn a_long_list_is_cut_as_slurm_cuts_it() {
        let set = tasks("1-5,7,10-20:2");
        for (limit, shown) in [
            (1, ""),
            (2, "."),
            (4, "..."),
            (8, "1-5,..."),
            (20, "1-5,7,10,12,14,1..."),
            (25, "1-5,7,10,12,14,16,18,..."),
            (26, "1-5,7,10,12,14,16,18,20"),
            (0, "1-5,7,10,12,14,16,18,20"),
        ] {
            assert_eq!(set.show_within(limit), shown);
        }
    }

    #[test]
    fn the_ends_of_the_numbers_are_safe() {
        let mut set = TaskSet::new();
        set.insert_range(TASK_MAX - 3, u32::MAX, 1);
        set.insert_range(u32::MAX - 1, u32::MAX, 7);
        set.insert(TASK_MAX - 5);
        assert!(!set.insert(TASK_MAX + 1));
        assert_eq!(set.len(), 5);
        assert!(set.remove(TASK_MAX) && set.insert(TASK_MAX) && !set.remove(u32::MAX));
        while set.pop_first().is_some() {}
        assert!(set.is_empty());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u32),
        InsertRange(u32, u32, u32),
        Remove(u32),
        RemoveAll(Vec<u32>),
        PopFirst,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u32..60).prop_map(Step::Insert),
            (0u32..60, 0u32..20, 1u32..6).prop_map(|(first, more, step)| Step::InsertRange(first, first + more, step)),
            (0u32..60).prop_map(Step::Remove),
            prop::collection::vec(0u32..60, 0..6).prop_map(Step::RemoveAll),
            Just(Step::PopFirst),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn it_behaves_as_a_set(steps in prop::collection::vec(step(), 0..40)) {
            let mut set = TaskSet::new();
            let mut model = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Insert(task) => prop_assert_eq!(set.insert(task), model.insert(task)),
                    Step::InsertRange(first, last, step) => {
                        set.insert_range(first, last, step);
                        model.extend((first..=last).step_by(step as usize));
                    }
                    Step::Remove(task) => prop_assert_eq!(set.remove(task), model.remove(&task)),
                    Step::RemoveAll(others) => {
                        let both: Vec<u32> = others.iter().copied().collect::<BTreeSet<_>>().intersection(&model).copied().collect();
                        let others: TaskSet = others.into_iter().collect();
                        prop_assert!(set.intersection(&others).iter().eq(both));
                        set.remove_all(&others);
                        model.retain(|task| !others.contains(*task));
                    }
                    Step::PopFirst => prop_assert_eq!(set.pop_first(), model.pop_first()),
                }
                prop_assert!(set.iter().eq(model.iter().copied()), "{:?} {:?}", set, model);
                prop_assert_eq!(set.len() as usize, model.len());
                prop_assert_eq!((set.first(), set.last()), (model.first().copied(), model.last().copied()));
                let gaps: BTreeSet<u32> = model.iter().zip(model.iter().skip(1)).map(|(a, b)| b - a).collect();
                let stride = match gaps.len() {
                    0 => model.first().map(|_| 1),
                    1 => gaps.first().copied(),
                    _ => None,
                };
                prop_assert_eq!(set.step(), stride);
                for task in 0..80 {
                    prop_assert_eq!(set.contains(task), model.contains(&task));
                }
            }
            prop_assert_eq!(&set, &model.iter().copied().collect());
            if !set.is_empty() {
                prop_assert_eq!(&tasks(&set.to_string()), &set);
            }
            let bytes = crate::codec::encode(&set);
            prop_assert_eq!(crate::codec::decode::<TaskSet>(&bytes).unwrap(), set);
        }

        #[test]
        fn common_runs_are_the_common_numbers(
            a in prop::collection::vec((0u32..80, 0u32..60, 1u32..8), 0..6),
            b in prop::collection::vec((0u32..80, 0u32..60, 1u32..8), 0..6),
        ) {
            let set = |ranges: &[(u32, u32, u32)]| {
                let mut set = TaskSet::new();
                ranges.iter().for_each(|(first, more, step)| set.insert_range(*first, first + more, *step));
                set
            };
            let (a, b) = (set(&a), set(&b));
            let both: Vec<u32> = a.iter().filter(|task| b.contains(*task)).collect();
            prop_assert_eq!(a.intersects(&b), !both.is_empty());
            let found = a.intersection(&b);
            prop_assert_eq!(found.len() as usize, both.len());
            prop_assert!(found.iter().eq(both));
        }

        #[test]
        fn no_text_panics(text in any::<String>(), near in "[0-9,:%-]{0,16}") {
            let _ = parse_array(&text);
            let _ = parse_array(&near);
        }
    }
}
