//! `spur init`: a cluster that other machines can join. Makes its authority, its configuration and its first controller.
use std::fs;
use std::time::Duration;

use model::{Config, Partition};
use wire::tls::Principal;
use wire::tls::authority::Authority;
use wire::tls::identity::{NewKey, replace};

use super::{PORT, host_name, invite, with_port};
use crate::getopt::{Value, flag};
use crate::operate::folder::{Folder, cannot};
use crate::operate::settle::Wanted;
use crate::operate::{Call, directory, machine_wide, options, up};
use model::trust::Role;

pub fn run(call: &Call) -> Result<i32, String> {
    let flags = [
        flag("dir", Some('d'), Value::Required),
        flag("listen", None, Value::Required),
        flag("address", None, Value::Required),
        flag("cluster", None, Value::Required),
    ];
    let parsed = options(&flags, call.arguments)?;
    let folder = Folder::to_start(directory(&parsed).as_deref())?;
    if folder.conf().exists() {
        return Err(format!("{} describes a cluster already", folder.conf().display()));
    }
    let listen = with_port(parsed.value("listen").unwrap_or("0.0.0.0"));
    let port = listen.rsplit_once(':').map_or(PORT.to_string(), |(_, port)| port.to_owned());
    let address = match parsed.value("address") {
        Some(address) => with_port(address),
        None => match listen.strip_prefix("0.0.0.0:") {
            Some(_) => format!("{}:{port}", host_name()),
            None => listen.clone(),
        },
    };
    folder.create()?;
    let mut config = Config {
        partitions: vec![Partition {
            name: "main".into(),
            nodes_text: "ALL".into(),
            is_default: true,
            priority_tier: 1,
            priority_job_factor: 1,
            ..Partition::default()
        }],
        accounting: config::usual_accounting(),
        ..Config::default()
    };
    if let Some(name) = parsed.value("cluster") {
        config.cluster_name = name.into();
    }
    config.controller.listen = listen;
    config.controller.address = address;
    config.controller.host = host_name();
    config.controller.patience_secs = model::config::PATIENCE_SECS;
    config::fill_in_places(&mut config, folder.places("a-long-node-name"));
    make_authority(&config)?;
    let text = format!(
        "# Written by `spur init`. Yours to edit: `scontrol reconfigure` reads it again.\n# Nodes join with `spur join`; they need no line here.\n{}",
        config::render(&config)
    );
    fs::write(folder.conf(), text).map_err(|error| cannot("write", &folder.conf(), error))?;
    up::bring_up(&folder, &Wanted::default(), call.command_names)?;
    machine_wide::announce(&folder, call.command_names);
    eprintln!("Cluster {} has its first controller, at {}.", config.cluster_name, config.controller.address);
    invite(&parsed, Role::Node)
}

/// The authority's key lies beside the certificate until the controller has taken it into its state.
fn make_authority(config: &Config) -> Result<(), String> {
    let dir = std::path::Path::new(&config.controller.state_dir).join("tls");
    let lifetime = Duration::from_micros(config.controller.certificate_lifetime.0);
    let made = || -> Result<(), wire::tls::authority::Failure> {
        let (ca_certificate, ca_key) = Authority::create()?;
        let key = NewKey::make()?;
        let issued = Authority::open(&ca_key)?.sign(&Principal::Controller(1), &key.public(), lifetime)?;
        key.keep(&dir, &ca_certificate, &issued.pem, issued.from_secs, issued.until_secs)?;
        replace(&dir.join("ca.key"), &ca_key)?;
        Ok(())
    };
    made().map_err(|error| format!("cannot make the authority in {}: {error}", dir.display()))
}
