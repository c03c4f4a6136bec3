//! `sacctmgr list configuration`: what Slurm's users look up of accounting. Its database is the cluster's own.
use model::config::Config;
use wire::client::Configuration;

use crate::version;
use crate::zone::Clock;

pub fn text(configuration: &Configuration, clock: &Clock) -> String {
    let config: &Config = &configuration.config;
    let given = |name: &str, usual: &str| config.as_given.get(name).cloned().unwrap_or_else(|| usual.to_string());
    let seconds = |name: &str, usual: &str| given(name, usual);
    let host = &config.controller.host;
    let owner = crate::scontrol::owner(configuration);
    let kind = if config.accounting.records { "accounting_storage/slurmdbd" } else { "accounting_storage/none" };
    let (place, storage) = match config.accounting.database.as_str() {
        "" => (format!("{}/history.sqlite", config.controller.state_dir), "accounting_storage/sqlite"),
        url if url.starts_with("postgres") => {
            (model::secret::without_password(url).into_owned(), "accounting_storage/postgres")
        }
        file => (file.to_string(), "accounting_storage/sqlite"),
    };
    let track = if config.accounting.enforce.wckeys || given("TrackWCKey", "No").eq_ignore_ascii_case("yes") {
        "Yes"
    } else {
        "No"
    };
    let private = config.accounting.private.words();
    let file = given("SLURM_CONF", "");
    let mut out = format!("Configuration data as of {}\n", clock.show(configuration.now));
    let mut line = |name: &str, value: &str| {
        let value = if value.is_empty() { "(null)" } else { value };
        out.push_str(&format!("{name:<22} = {value}\n"));
    };
    line("AccountingStorageBackupHost ", "");
    line("AccountingStorageHost", host);
    line("AccountingStorageParameters", &given("AccountingStorageParameters", ""));
    line("AccountingStoragePass", "");
    line("AccountingStoragePort", "0");
    line("AccountingStorageType", kind);
    line("AccountingStorageUser", "N/A");
    line("AuthType", "auth/peercred");
    line("MessageTimeout", &format!("{} sec", seconds("MessageTimeout", "10")));
    line("PluginDir", "");
    line("PrivateData", &private);
    line("SlurmUserId", &owner);
    line("SLURM_CONF", &crate::context::cluster().map_or(file, |cluster| cluster.file.display().to_string()));
    line("SLURM_VERSION", version::SLURM);
    line("TCPTimeout", &format!("{} sec", seconds("TCPTimeout", "2")));
    line("TrackWCKey", track);
    out.push_str("\nSlurmDBD configuration:\n");
    let mut line = |name: &str, value: &str| {
        let value = if value.is_empty() { "(null)" } else { value };
        out.push_str(&format!("{name:<22} = {value}\n"));
    };
    line("AllowNoDefAcct", "No");
    line("ArchiveDir", "");
    for what in ["Events", "Jobs", "Resvs"] {
        line(&format!("Archive{what}"), "No");
    }
    line("ArchiveScript", "");
    for what in ["Steps", "Suspend", "TXN", "Usage"] {
        line(&format!("Archive{what}"), "No");
    }
    line("AuthType", "auth/peercred");
    line("BOOT_TIME", &clock.show(configuration.started));
    line("CommitDelay", "No");
    line("DbdAddr", host);
    line("DbdBackupHost", "");
    line("DbdHost", host);
    line("DbdPort", "0");
    line("DefaultQOS", "");
    line("MaxQueryTimeRange", "UNLIMITED");
    line("PrivateData", &private);
    for what in ["Event", "Job", "Resv", "Step", "Suspend", "TXN", "Usage"] {
        line(&format!("Purge{what}After"), "NONE");
    }
    line("SLURMDBD_CONF", "");
    line("SLURMDBD_VERSION", version::SLURM);
    line("SlurmUser", &owner);
    line("StorageHost", "");
    line("StorageLoc", &place);
    line("StorageType", storage);
    line("TrackWCKey", track);
    line("TrackSlurmctldDown", "No");
    out
}
