//! Sets of CPU numbers: which CPUs of a node are given out, and their list and mask forms.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use std::str::FromStr;

use crate::decode_work;

/// The largest CPU number there can be; keeps a mistyped list from filling the memory.
const CPU_MAX: u32 = 65_535;
const WORD: u32 = u64::BITS;

/// A set of CPU numbers. Shown, read and stored as a list: `0-3,7`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet {
    /// The last word is never zero, so equal sets are equal values.
    words: Vec<u64>,
}

impl CpuSet {
    pub fn new() -> Self {
        Self::default()
    }

    /// The CPUs 0 to `count - 1`.
    pub fn first(count: u32) -> Self {
        let count = count.min(CPU_MAX + 1);
        let mut words = vec![u64::MAX; (count / WORD) as usize];
        if !count.is_multiple_of(WORD) {
            words.push((1 << (count % WORD)) - 1);
        }
        CpuSet { words }
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// How many of the stretches of `unit` CPUs each have one of these.
    pub fn n_touched(&self, unit: u32) -> u32 {
        if unit < 2 {
            return self.len();
        }
        if unit <= WORD && unit.is_power_of_two() {
            // The first bit of each stretch is set when any of them is.
            let firsts = (0..WORD / unit).fold(0u64, |mask, at| mask | 1 << (at * unit));
            let folded = |word: u64| {
                let steps = (0..unit.ilog2()).map(|step| 1 << step);
                steps.fold(word, |word, step: u32| word | word >> step) & firsts
            };
            return self.words.iter().map(|word| folded(*word).count_ones()).sum();
        }
        let mut last = None;
        self.iter().filter(|cpu| last.replace(cpu / unit) != Some(cpu / unit)).count() as u32
    }

    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get((cpu / WORD) as usize).is_some_and(|word| word >> (cpu % WORD) & 1 == 1)
    }

    /// Adds a CPU; numbers beyond any real machine are not taken.
    pub fn insert(&mut self, cpu: u32) {
        if cpu > CPU_MAX {
            return;
        }
        let index = (cpu / WORD) as usize;
        if self.words.len() <= index {
            self.words.resize(index + 1, 0);
        }
        self.words[index] |= 1 << (cpu % WORD);
    }

    /// Adds the CPUs from `first` to `last`, a word at a time.
    fn insert_span(&mut self, first: u32, last: u32) {
        let (first_word, last_word) = ((first / WORD) as usize, (last / WORD) as usize);
        if self.words.len() <= last_word {
            self.words.resize(last_word + 1, 0);
        }
        for index in first_word..=last_word {
            let from = if index == first_word { u64::MAX << (first % WORD) } else { u64::MAX };
            let to = if index == last_word { u64::MAX >> (WORD - 1 - last % WORD) } else { u64::MAX };
            self.words[index] |= from & to;
        }
    }

    pub fn remove(&mut self, cpu: u32) {
        if let Some(word) = self.words.get_mut((cpu / WORD) as usize) {
            *word &= !(1 << (cpu % WORD));
        }
        self.trim();
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(index as u32 * WORD + bit)
            })
        })
    }

    pub fn union(&self, other: &Self) -> Self {
        let (long, short) = if self.words.len() >= other.words.len() { (self, other) } else { (other, self) };
        let mut words = long.words.clone();
        for (word, more) in words.iter_mut().zip(&short.words) {
            *word |= more;
        }
        CpuSet { words }
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let mut set = CpuSet { words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect() };
        set.trim();
        set
    }

    pub fn difference(&self, other: &Self) -> Self {
        let mut words = self.words.clone();
        for (word, less) in words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
        let mut set = CpuSet { words };
        set.trim();
        set
    }

    pub fn is_subset(&self, other: &Self) -> bool {
        self.words.len() <= other.words.len() && self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// The `count` lowest CPUs, or none at all if there are fewer.
    pub fn lowest(&self, count: u32) -> Option<Self> {
        if self.len() < count {
            return None;
        }
        Some(self.iter().take(count as usize).collect())
    }

    /// As a mask, the form of `--cpu-bind=mask_cpu`: `0x8F`.
    pub fn show_mask(&self) -> String {
        let Some((top, rest)) = self.words.split_last() else { return "0x0".to_owned() };
        let mut mask = format!("0x{top:X}");
        for word in rest.iter().rev() {
            write!(mask, "{word:016X}").expect("a String takes everything");
        }
        mask
    }

    /// Reads a mask, with or without `0x`.
    pub fn parse_mask(mask: &str) -> Option<Self> {
        let digits = mask.strip_prefix("0x").or_else(|| mask.strip_prefix("0X")).unwrap_or(mask);
        if digits.is_empty() {
            return None;
        }
        let mut set = CpuSet::new();
        for (place, digit) in digits.chars().rev().enumerate() {
            let digit = digit.to_digit(16)?;
            for bit in (0..4).filter(|bit| digit >> bit & 1 == 1) {
                let cpu = place as u64 * 4 + bit;
                if cpu > u64::from(CPU_MAX) {
                    return None;
                }
                set.insert(cpu as u32);
            }
        }
        Some(set)
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = CpuSet::new();
        set.extend(cpus);
        set
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, cpus: I) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = String::new();
        let mut cpus = self.iter().peekable();
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            let comma = if list.is_empty() { "" } else { "," };
            write!(list, "{comma}{first}")?;
            if last > first {
                write!(list, "-{last}")?;
            }
        }
        out.pad(&list)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCpus(pub String);

impl fmt::Display for InvalidCpus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Invalid CPU list \"{}\"", self.0)
    }
}

impl std::error::Error for InvalidCpus {}

impl FromStr for CpuSet {
    type Err = InvalidCpus;

    /// Reads a list as the kernel and Slurm print it; an empty one is the empty set.
    fn from_str(text: &str) -> Result<Self, InvalidCpus> {
        let list = text.trim_end();
        let mut set = CpuSet::new();
        if list.is_empty() {
            return Ok(set);
        }
        for range in list.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => set.insert_span(first, last),
                _ => return Err(InvalidCpus(text.to_owned())),
            }
        }
        Ok(set)
    }
}

fn number(digits: &str) -> Option<u32> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|cpu| *cpu <= CPU_MAX)
}

impl TryFrom<String> for CpuSet {
    type Error = InvalidCpus;

    /// A short text may name many CPUs, and a message may hold many texts.
    fn try_from(text: String) -> Result<Self, InvalidCpus> {
        let set: CpuSet = text.parse()?;
        match decode_work::spend(set.words.len() as u64) {
            Ok(()) => Ok(set),
            Err(_) => Err(InvalidCpus("too many CPUs in one message".to_owned())),
        }
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> String {
        set.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[track_caller]
    fn cpus(list: &str) -> CpuSet {
        list.parse().expect("valid list")
    }

    #[test]
    fn lists_are_read_and_shown() {
        assert_eq!(cpus("0-3,7").iter().collect::<Vec<_>>(), [0, 1, 2, 3, 7]);
        assert_eq!(cpus("7,0,1,3,2").to_string(), "0-3,7");
        assert_eq!(cpus("63,64").to_string(), "63-64");
        assert_eq!(cpus("").to_string(), "");
        assert_eq!(cpus("0-1\n").to_string(), "0-1");
        for list in ["3-1", "a", "1,", "-1", "1--2", "+1", "65536", "0-99999999999"] {
            assert!(list.parse::<CpuSet>().is_err(), "{list}");
        }
    }

    #[test]
    fn masks_are_read_and_shown() {
        assert_eq!(cpus("0-3,7").show_mask(), "0x8F");
        assert_eq!(cpus("64").show_mask(), "0x10000000000000000");
        assert_eq!(CpuSet::new().show_mask(), "0x0");
        assert_eq!(CpuSet::parse_mask("0x8f"), Some(cpus("0-3,7")));
        assert_eq!(CpuSet::parse_mask("f"), Some(cpus("0-3")));
        assert_eq!(CpuSet::parse_mask("0x"), None);
        assert_eq!(CpuSet::parse_mask("g"), None);
    }

    #[test]
    fn the_lowest_are_taken_all_or_none() {
        assert_eq!(cpus("1,3,5").lowest(2), Some(cpus("1,3")));
        assert_eq!(cpus("1,3,5").lowest(4), None);
        assert_eq!(CpuSet::first(64).to_string(), "0-63");
        assert_eq!(CpuSet::first(65), cpus("0-64"));
        assert_eq!(CpuSet::first(0), CpuSet::new());
    }

    fn set() -> impl Strategy<Value = BTreeSet<u32>> {
        prop::collection::btree_set(0u32..200, 0..40)
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_set(a in set(), b in set(), cpu in 0u32..200) {
            let (x, y): (CpuSet, CpuSet) = (a.iter().copied().collect(), b.iter().copied().collect());
            let same = |set: &CpuSet, cpus: BTreeSet<u32>| set.iter().eq(cpus.iter().copied()) && *set == cpus.into_iter().collect();
            prop_assert!(same(&x.union(&y), &a | &b));
            prop_assert!(same(&x.intersection(&y), &a & &b));
            prop_assert!(same(&x.difference(&y), &a - &b));
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
            prop_assert_eq!(x.contains(cpu), a.contains(&cpu));
            prop_assert_eq!(x.len() as usize, a.len());
            for unit in [1, 2, 3, 4, 8, 12, 64, 100] {
                let touched: BTreeSet<u32> = a.iter().map(|cpu| cpu / unit).collect();
                prop_assert_eq!(x.n_touched(unit) as usize, touched.len(), "unit {}", unit);
            }
            let mut less = x.clone();
            less.remove(cpu);
            prop_assert_eq!(less, a.iter().copied().filter(|other| *other != cpu).collect());
        }

        #[test]
        fn every_form_is_read_back(a in set()) {
            let x: CpuSet = a.into_iter().collect();
            prop_assert_eq!(&cpus(&x.to_string()), &x);
            prop_assert_eq!(CpuSet::parse_mask(&x.show_mask()), Some(x.clone()));
            let bytes = crate::codec::encode(&x);
            prop_assert_eq!(crate::codec::decode::<CpuSet>(&bytes).unwrap(), x);
        }

        #[test]
        fn no_text_panics(text in any::<String>(), near in "[0-9,-]{0,16}") {
            for text in [text, near] {
                let _ = text.parse::<CpuSet>();
                CpuSet::parse_mask(&text);
            }
        }
    }
}
