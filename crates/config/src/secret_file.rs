//! Files that hold one secret: nobody but their owner and its group may read them.
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::secret::SecretText;

/// A password is shorter; what is longer is another file.
const SECRET_MAX_BYTES: u64 = 4096;

/// The first line of the file; a file that others may read or change is refused.
pub fn read_secret(path: &Path) -> Result<SecretText, String> {
    let wrong = |why: String| format!("{}: {why}", path.display());
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let about = file.metadata().map_err(|error| wrong(error.to_string()))?;
    if !about.is_file() {
        return Err(wrong("it is no file".into()));
    }
    if about.mode() & 0o027 != 0 {
        return Err(wrong("others may read or change it: chmod 600 it".into()));
    }
    let mut text = String::new();
    file.take(SECRET_MAX_BYTES).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
    match text.lines().next().unwrap_or_default() {
        "" => Err(wrong("its first line is empty".into())),
        line => Ok(SecretText::new(line)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn secret_that_others_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("spur-secret-{}", std::process::id()));
        std::fs::write(&path, "pw\nrest\n").unwrap();
        for (mode, is_taken) in [(0o600, true), (0o640, true), (0o644, false), (0o660, false), (0o602, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read_secret(&path);
            assert_eq!(
                read.as_ref().map(SecretText::expose).is_ok_and(|text| text == "pw"),
                is_taken,
                "{mode:o} {read:?}"
            );
        }
        std::fs::remove_file(&path).unwrap();
    }
}
