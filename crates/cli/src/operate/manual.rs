//! `spur man DIR` and `spur completion SHELL`.
use std::path::Path;

use super::Call;
use crate::manual::{Shell, all, completion, next_words, page};

/// Writes `DIR/man1/sbatch.1` and the others.
pub fn man(call: &Call) -> Result<i32, String> {
    let [dir] = call.arguments else { return Err("give one directory, such as /usr/local/share/man".into()) };
    let folder = Path::new(dir).join("man1");
    let failed = |what: &Path, error: std::io::Error| format!("cannot write {}: {error}", what.display());
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    for manual in all() {
        let file = folder.join(format!("{}.1", manual.name));
        std::fs::write(&file, page(&manual)).map_err(|error| failed(&file, error))?;
    }
    say!("wrote {} pages to {}", all().len(), folder.display());
    Ok(0)
}

/// Prints a script: `eval "$(spur completion bash)"`; or, for that script, what may stand in the place of the last word.
pub fn complete(call: &Call) -> Result<i32, String> {
    if let [words, command, before @ .., last] = call.arguments
        && words == "words"
    {
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let fits = |word: &&String| {
            word.len() >= last.len() && word.as_bytes()[..last.len()].eq_ignore_ascii_case(last.as_bytes())
        };
        for word in next_words(command, &before).unwrap_or_default().iter().filter(fits) {
            say!("{word}");
        }
        return Ok(0);
    }
    let [shell] = call.arguments else { return Err("give one shell: bash, zsh or fish".into()) };
    let shell: Shell = shell.parse()?;
    crate::output::print(&completion(shell, &all()));
    Ok(0)
}
