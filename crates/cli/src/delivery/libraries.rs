//! The shared libraries that a program needs, as `ldd` finds them (`--send-libs`).
use tokio::process::Command;

/// What every node has of its own (BcastExclude).
const EXCLUDED: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];

#[derive(Debug, Default, PartialEq)]
pub struct Found {
    pub paths: Vec<String>,
    pub missing: Vec<String>,
}

/// `yes` and `no` as Slurm knows them; no word is yes.
pub fn is_wanted(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "" | "yes" | "y" | "true" | "t" | "1" => Some(true),
        "no" | "n" | "false" | "f" | "0" => Some(false),
        _ => None,
    }
}

/// Directories whose libraries stay, and what is to be said about the list.
pub fn excluded(list: Option<&str>) -> (Vec<String>, Vec<String>) {
    match list {
        None => (EXCLUDED.map(str::to_owned).to_vec(), Vec::new()),
        Some(list) if list.eq_ignore_ascii_case("none") => (Vec::new(), Vec::new()),
        Some(list) => {
            let (paths, wrong): (Vec<&str>, Vec<&str>) = list.split(',').partition(|path| path.starts_with('/'));
            let complaint = |path: &&str| format!("error: Ignoring non-absolute excluded path: '{path}'");
            let paths = paths.iter().map(|path| path.trim_end_matches('/').to_owned());
            (paths.collect(), wrong.iter().map(complaint).collect())
        }
    }
}

pub fn is_excluded(library: &str, excluded: &[String]) -> bool {
    excluded.iter().any(|dir| library.strip_prefix(dir.as_str()).is_some_and(|rest| rest.starts_with('/')))
}

/// Where the libraries of the program at this path are put.
pub fn directory(program: &str) -> String {
    format!("{program}_libs")
}

/// A file that is no dynamic program has none.
pub async fn of(program: &str) -> Result<Found, String> {
    let listed = Command::new("ldd").arg(program).output().await;
    let listed = listed.map_err(|error| format!("--send-libs needs the program ldd: {error}"))?;
    Ok(parse(&String::from_utf8_lossy(&listed.stdout)))
}

/// `libm.so.6 => /lib/libm.so.6 (0x7f…)`, `libx.so => not found`, `/lib64/ld-linux.so.2 (0x7f…)`
fn parse(listed: &str) -> Found {
    let mut found = Found::default();
    for line in listed.lines() {
        // The loader of programs itself has no arrow, but an address.
        let line = line.trim();
        let Some((name, place)) = line.split_once(" => ").or(line.contains(" (0x").then_some((line, line))) else {
            continue;
        };
        match place.split(" (0x").next().unwrap_or_default().trim() {
            "not found" => found.missing.push(name.to_owned()),
            path if path.starts_with('/') => found.paths.push(path.to_owned()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ldd_lists_is_understood() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x86_64/libm.so.6 (0x00007f)\n\
                      \tlibown.so => /home/ada/my libs/libown.so (0x00007f)\n\tlibgone.so => not found\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found = parse(listed);
        let loader = "/lib64/ld-linux-x86-64.so.2";
        assert_eq!(found.paths, ["/lib/x86_64/libm.so.6", "/home/ada/my libs/libown.so", loader]);
        assert_eq!(found.missing, ["libgone.so"]);
        assert_eq!(parse("\tnot a dynamic executable\n"), Found::default());
    }

    #[test]
    fn the_systems_own_libraries_stay_where_they_are() {
        let usual = excluded(None).0;
        assert!(is_excluded("/lib/x86_64/libm.so.6", &usual));
        assert!(!is_excluded("/library/libm.so.6", &usual));
        assert!(!is_excluded("/lib/libm.so.6", &excluded(Some("NONE")).0));
        assert!(is_excluded("/opt/x/liby.so", &excluded(Some("/opt/x/,/y")).0));
        let complaint = "error: Ignoring non-absolute excluded path: 'here'".to_owned();
        assert_eq!(excluded(Some("/opt,here")), (vec!["/opt".to_owned()], vec![complaint]));
    }
}
