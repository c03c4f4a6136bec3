//! Files of the daemons: what they hold is read by nobody else, whatever mode the directory above has.
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::cluster::Cluster;

/// Every file below, and who may read it.
fn files_below(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => files_below(&entry.path(), into),
            false => into.push(entry.path()),
        }
    }
}

#[test]
fn state_is_for_the_controllers_user_alone() {
    let head = Cluster::up("--nodes 1");
    let job = head.sbatch("-o out --wrap 'echo done'");
    head.wait_state(&job, "COMPLETED");
    head.wait_until(&format!("sacct -n -X -j {job} -o state"), |said| said.out.contains("COMPLETED"));
    head.ok(&format!("spur backup {}", head.dir.join("backup").display()));
    head.ok(&format!("spur down --dir {}", head.dir.display()));
    // A snapshot is there now, too.
    let mut files = vec![head.dir.join("backup")];
    files_below(&head.dir.join("state"), &mut files);
    assert!(files.len() > 4, "{files:?}");
    for file in files {
        let mode = std::fs::metadata(&file).unwrap().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", file.display());
    }
    // Nor does a site's own directory make the journal readable.
    std::fs::set_permissions(head.dir.join("state"), std::fs::Permissions::from_mode(0o755)).unwrap();
    head.start("");
    let journal = std::fs::metadata(head.dir.join("state/journal")).unwrap().mode() & 0o777;
    assert_eq!(journal & 0o077, 0, "{journal:o}");
}
