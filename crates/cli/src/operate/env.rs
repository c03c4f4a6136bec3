//! `spur env`: shell lines that make a cluster the one all commands use.
use std::path::Path;

use super::folder::Folder;
use super::{Call, directory, options};
use crate::getopt::{Value, flag};

pub fn run(call: &Call) -> Result<i32, String> {
    let parsed = options(&[flag("dir", Some('d'), Value::Required)], call.arguments)?;
    let folder = Folder::to_find(directory(&parsed).as_deref())?;
    crate::output::print(&lines(&folder.bin(), &folder.conf()));
    Ok(0)
}

pub(super) fn lines(bin: &Path, conf: &Path) -> String {
    let quoted = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    format!("export PATH={}:\"$PATH\"\nexport SPUR_CONF={}\n", quoted(bin), quoted(conf))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_survives_the_shell() {
        assert_eq!(
            lines(Path::new("/a b/bin"), Path::new("/it's/spur.conf")),
            "export PATH='/a b/bin':\"$PATH\"\nexport SPUR_CONF='/it'\\''s/spur.conf'\n"
        );
    }
}
