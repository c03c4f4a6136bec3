//! `scontrol show hostnames`, `hostlist` and `hostlistsorted`: no cluster needed.
use model::hostlist;

/// What is printed, or what goes to stderr.
pub type Answer = Result<String, String>;

/// One name a line.
pub fn names(list: &str) -> Answer {
    let names = hostlist::expand(list).map_err(|_| format!("Invalid hostlist: {list}"))?;
    if names.is_empty() {
        return Err("scontrol: error: host list is empty".into());
    }
    Ok(names.iter().map(|name| format!("{name}\n")).collect())
}

/// The names in brackets, in the order given; an absolute path is a file of names.
pub fn list(text: &str) -> Answer {
    Ok(hostlist::compress_in_order(read(text)?) + "\n")
}

/// As `list`, sorted; repetitions stay.
pub fn list_sorted(text: &str) -> Answer {
    let mut names = read(text)?;
    names.sort_by(|a, b| hostlist::natural_cmp(a, b));
    Ok(hostlist::compress_in_order(names) + "\n")
}

fn read(text: &str) -> Result<Vec<String>, String> {
    let content = match text.starts_with('/') {
        true => std::fs::read_to_string(text).map_err(|error| format!("Can't open {text}: {error}"))?,
        false => text.to_string(),
    };
    let list = content.split(['\n', ',']).map(str::trim).filter(|word| !word.is_empty());
    let list = if text.starts_with('/') { list.collect::<Vec<_>>().join(",") } else { content.clone() };
    hostlist::expand(&list).map_err(|_| format!("Invalid hostlist: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_as_slurm_writes_them() {
        assert_eq!(names("n[1-3,5]").unwrap(), "n1\nn2\nn3\nn5\n");
        assert_eq!(names("rack[1-2]n[1-2]").unwrap(), "rack1n1\nrack1n2\nrack2n1\nrack2n2\n");
        assert_eq!(names("n[01-03],x,y[2-1]").unwrap_err(), "Invalid hostlist: n[01-03],x,y[2-1]");
        for (given, expected) in [
            ("n1,n2,n3,n5", "n[1-3,5]"),
            ("n3,n1,n2,n1", "n[3,1-2,1]"),
            ("a1b1,a1b2,a2b1", "a1b[1-2],a2b1"),
            ("n001,n002,n10", "n[001-002,10]"),
            ("x,y,z", "x,y,z"),
            ("n9,n10,n11", "n[9-11]"),
            ("n09,n10,n11", "n[09-11]"),
        ] {
            assert_eq!(list(given).unwrap().trim_end(), expected, "{given}");
        }
        assert_eq!(list_sorted("n3,n1,n2,n1,a").unwrap(), "a,n[1,1-3]\n");
    }
}
