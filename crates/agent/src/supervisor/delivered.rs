//! A program that was brought to the node first (`srun --bcast`): what its launch must know of it.
use model::agent::Launch;

const SEARCHED: &[u8] = b"LD_LIBRARY_PATH=";

/// The tasks run that file, and find the libraries that came with it before all others.
pub fn note(launch: &mut Launch, program: String, libraries: Option<String>) {
    if let Some(first) = launch.step_spec.as_mut().and_then(|spec| spec.arguments.first_mut()) {
        *first = program;
    }
    let Some(libraries) = libraries else { return };
    let mut searched = [SEARCHED, libraries.as_bytes()].concat();
    let mut entries: Vec<&[u8]> = launch.environment.split(|byte| *byte == 0).collect();
    if let Some(at) = entries.iter().position(|entry| entry.starts_with(SEARCHED)) {
        let before = entries.remove(at);
        if before.len() > SEARCHED.len() {
            searched.push(b':');
            searched.extend_from_slice(&before[SEARCHED.len()..]);
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries.push(&searched);
    launch.environment = entries.join(&0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_that_came_along_are_found_first() {
        let check = |before: &str, after: &str| {
            let mut launch = Launch { environment: before.as_bytes().to_vec(), ..Launch::default() };
            note(&mut launch, "/tmp/x".into(), Some("/tmp/x_libs".into()));
            assert_eq!(String::from_utf8(launch.environment).unwrap(), after);
        };
        check("A=1\0B=2\0", "A=1\0B=2\0LD_LIBRARY_PATH=/tmp/x_libs");
        check("LD_LIBRARY_PATH=/opt/lib\0B=2", "B=2\0LD_LIBRARY_PATH=/tmp/x_libs:/opt/lib");
        check("LD_LIBRARY_PATH=\0B=2", "B=2\0LD_LIBRARY_PATH=/tmp/x_libs");
    }
}
