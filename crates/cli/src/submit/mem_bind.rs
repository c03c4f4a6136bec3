//! `--mem-bind`: memory comes from where the kernel finds it; what was asked for is told to the job's programs, as Slurm tells it.

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemBind {
    /// As it was given.
    written: String,
    is_loud: bool,
    prefers: bool,
    sorts: bool,
    /// With its colon, where a list follows; empty: none was named.
    kind: &'static str,
    list: String,
}

impl MemBind {
    /// None: a word that there is not, or a list where none belongs.
    pub fn parse(text: &str) -> Option<MemBind> {
        let mut bind = MemBind { written: text.to_string(), ..MemBind::default() };
        let text = text.to_ascii_lowercase();
        let (words, list) = match text.split_once(':') {
            Some((words, list)) => (words, Some(list)),
            None => (text.as_str(), None),
        };
        let mut words: Vec<&str> = words.split(',').collect();
        if let Some(list) = list {
            bind.kind = match words.pop()? {
                "map_mem" => "map_mem:",
                "mask_mem" => "mask_mem:",
                _ => return None,
            };
            // Masks are told without their prefix.
            let is_mask = bind.kind == "mask_mem:";
            let items = list.split(',').map(|item| if is_mask { item.trim_start_matches("0x") } else { item });
            bind.list = items.collect::<Vec<_>>().join(",");
        }
        for word in words {
            match word {
                "v" | "verbose" => bind.is_loud = true,
                "q" | "quiet" => bind.is_loud = false,
                "p" | "prefer" => bind.prefers = true,
                "sort" => bind.sorts = true,
                "nosort" => bind.sorts = false,
                "no" | "none" => bind.kind = "none",
                "local" => bind.kind = "local",
                "rank" => bind.kind = "rank",
                _ => return None,
            }
        }
        Some(bind)
    }

    fn loudness(&self) -> &'static str {
        if self.is_loud { "verbose" } else { "quiet" }
    }

    /// For the programs of a job, and for the steps in it to read; what an outer job says is none of theirs.
    pub fn of_job(bind: Option<&MemBind>) -> [(&'static str, Option<String>); 3] {
        [
            ("SLURM_MEM_BIND", bind.map(|bind| bind.written.clone())),
            ("SLURM_MEM_BIND_SORT", bind.filter(|bind| bind.sorts).map(|_| "sort".to_string())),
            ("SLURM_MEM_BIND_VERBOSE", bind.map(|bind| bind.loudness().to_string())),
        ]
    }

    /// For the tasks of a step.
    pub fn of_step(&self) -> Vec<(&'static str, String)> {
        let place = format!("{}{}", self.kind, self.list);
        let words = [self.loudness(), if self.prefers { "prefer" } else { "" }, &place];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let mut told = vec![("SLURM_MEM_BIND", words.join(",")), ("SLURM_MEM_BIND_LIST", self.list.clone())];
        if self.prefers {
            told.push(("SLURM_MEM_BIND_PREFER", "prefer".to_string()));
        }
        if self.sorts {
            told.push(("SLURM_MEM_BIND_SORT", "sort".to_string()));
        }
        told.push(("SLURM_MEM_BIND_TYPE", self.kind.to_string()));
        told.push(("SLURM_MEM_BIND_VERBOSE", self.loudness().to_string()));
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from a 22.05.
    #[test]
    fn tasks_are_told_what_was_asked_for() {
        let told = |text: &str| {
            let bind = MemBind::parse(text).unwrap_or_else(|| panic!("{text}"));
            let words =
                bind.of_step().into_iter().map(|(name, value)| format!("{}={value}", &name["SLURM_MEM_".len()..]));
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told("local"), "BIND=quiet,local BIND_LIST= BIND_TYPE=local BIND_VERBOSE=quiet");
        assert_eq!(told("verbose"), "BIND=verbose BIND_LIST= BIND_TYPE= BIND_VERBOSE=verbose");
        assert_eq!(
            told("prefer,local"),
            "BIND=quiet,prefer,local BIND_LIST= BIND_PREFER=prefer BIND_TYPE=local BIND_VERBOSE=quiet"
        );
        assert_eq!(told("sort,rank"), "BIND=quiet,rank BIND_LIST= BIND_SORT=sort BIND_TYPE=rank BIND_VERBOSE=quiet");
        assert_eq!(
            told("mask_mem:0x1,0x2"),
            "BIND=quiet,mask_mem:1,2 BIND_LIST=1,2 BIND_TYPE=mask_mem: BIND_VERBOSE=quiet"
        );
        assert_eq!(
            told("v,p,nosort,map_mem:0,1"),
            "BIND=verbose,prefer,map_mem:0,1 BIND_LIST=0,1 BIND_PREFER=prefer BIND_TYPE=map_mem: BIND_VERBOSE=verbose"
        );
        for wrong in ["nosuch", "local:1", "map_mem", "mask_mem", ""] {
            assert_eq!(MemBind::parse(wrong), None, "{wrong:?}");
        }
    }
}
