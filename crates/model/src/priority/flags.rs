//! Words of `PriorityFlags`.
use super::PriorityConfig;

type Setting = fn(&mut PriorityConfig) -> &mut bool;

/// In the order in which Slurm shows them.
const FLAGS: &[(&str, Setting)] = &[
    ("ACCRUE_ALWAYS", |config| &mut config.always_accrues),
    ("SMALL_RELATIVE_TO_TIME", |config| &mut config.size_by_time),
    ("CALCULATE_RUNNING", |config| &mut config.calculates_running),
    ("DEPTH_OBLIVIOUS", |config| &mut config.depth_oblivious),
    ("NO_FAIR_TREE", |config| &mut config.no_fair_tree),
    ("INCR_ONLY", |config| &mut config.only_rises),
    ("MAX_TRES", |config| &mut config.bills_dearest),
    ("NO_NORMAL_ASSOC", |config| &mut config.raw_association),
    ("NO_NORMAL_PART", |config| &mut config.raw_partition),
    ("NO_NORMAL_QOS", |config| &mut config.raw_qos),
    ("NO_NORMAL_TRES", |config| &mut config.raw_tres),
];

impl PriorityConfig {
    /// False: there is no such word, or it has no effect here.
    pub fn set_flag(&mut self, word: &str) -> bool {
        let word = word.to_uppercase();
        let all = word == "NO_NORMAL_ALL";
        let is_meant = |name: &str| name == word || (all && name.starts_with("NO_NORMAL_"));
        let mut is_known = word == "FAIR_TREE";
        for (_, setting) in FLAGS.iter().filter(|(name, _)| is_meant(name)) {
            *setting(self) = true;
            is_known = true;
        }
        // It is a way to do without the tree.
        self.no_fair_tree |= self.depth_oblivious;
        is_known
    }

    pub fn flags(&self) -> String {
        let mut own = self.clone();
        let set = FLAGS.iter().filter(|(_, setting)| *setting(&mut own)).map(|(name, _)| *name);
        set.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_and_shown_in_slurms_order() {
        let mut config = PriorityConfig::default();
        let words = ["max_tres", "NO_NORMAL_ALL", "Accrue_Always", "FAIR_TREE", "DEPTH_OBLIVIOUS", "NONSENSE"];
        let known = words.map(|word| config.set_flag(word));
        assert_eq!(known, [true, true, true, true, true, false]);
        let all = "ACCRUE_ALWAYS,DEPTH_OBLIVIOUS,NO_FAIR_TREE,MAX_TRES,NO_NORMAL_ASSOC,NO_NORMAL_PART,NO_NORMAL_QOS,NO_NORMAL_TRES";
        assert_eq!(config.flags(), all);
    }
}
