//! Licences of licence servers: which there are, and how much of each a cluster may use.
use model::accounts::{Accounts, Resource, ResourceEdit, ResourceFilter, WHOLE};
use model::{Reject, license};

use super::{good_name, refused};

/// New ones, and parts of them, or of known ones, for clusters that have none.
pub(super) fn add(
    accounts: &mut Accounts,
    names: &[String],
    server: &str,
    edit: &ResourceEdit,
    clusters: &[String],
) -> Result<(), Reject> {
    let mut is_new = false;
    for name in names {
        let id = match accounts.resource(name, server) {
            Some(known) => known.id,
            None => {
                is_new = true;
                new(accounts, name, server, edit)?
            }
        };
        let resource = accounts.resources.get_mut(&id).expect("found or made above");
        for cluster in clusters {
            if !resource.shares.contains_key(cluster) {
                let percent = edit.percent.ok_or_else(|| refused("PercentAllowed says how much a cluster may use"))?;
                resource.shares.insert(cluster.clone(), percent);
                is_new = true;
            }
        }
        is_not_over_allocated(resource)?;
    }
    if is_new { Ok(()) } else { Err(refused("Nothing new added")) }
}

fn new(accounts: &mut Accounts, name: &str, server: &str, edit: &ResourceEdit) -> Result<u32, Reject> {
    let count = edit.count.ok_or_else(|| refused(&format!("Need to designate a resource count for '{name}'")))?;
    good_name(name)?;
    good_name(server)?;
    let id = accounts.last_resource + 1;
    let mut resource = Resource { id, name: name.into(), server: server.into(), count, ..Resource::default() };
    resource.description = name.into();
    edit.set(&mut resource);
    // Jobs have to be able to ask for it.
    let label = resource.license();
    if !license::parse_list(&label).is_some_and(|list| list.len() == 1 && list[0].name == label) {
        return Err(refused(&format!("Bad name `{label}`")));
    }
    accounts.last_resource = id;
    accounts.resources.insert(id, resource);
    Ok(id)
}

pub(super) fn modify(accounts: &mut Accounts, filter: &ResourceFilter, edit: &ResourceEdit) -> Result<(), Reject> {
    if edit.count.is_some() && !filter.clusters.is_empty() {
        return Err(refused("Can't change \"count\" on a cluster-based resource"));
    }
    if edit.percent.is_some() && filter.clusters.is_empty() {
        return Err(refused("Can't change \"percentallowed\" without specifying a cluster"));
    }
    let mut is_changed = false;
    for resource in accounts.resources.values_mut().filter(|one| filter.passes(one)) {
        let chosen = resource.shares.iter_mut().filter(|(cluster, percent)| filter.passes_share(cluster, **percent));
        let chosen: Vec<&mut u16> = chosen.map(|(_, percent)| percent).collect();
        if filter.is_about_shares() && chosen.is_empty() {
            continue;
        }
        if let Some(percent) = edit.percent {
            chosen.into_iter().for_each(|one| *one = percent);
        }
        edit.set(resource);
        is_not_over_allocated(resource)?;
        is_changed = true;
    }
    if is_changed { Ok(()) } else { Err(refused("Nothing modified")) }
}

/// Jobs that hold some keep them until they end.
pub(super) fn delete(accounts: &mut Accounts, filter: &ResourceFilter) -> Result<(), Reject> {
    if filter.is_empty() {
        return Err(refused("No conditions given to remove"));
    }
    if filter.is_about_shares() {
        for resource in accounts.resources.values_mut().filter(|one| filter.passes(one)) {
            resource.shares.retain(|cluster, percent| !filter.passes_share(cluster, *percent));
        }
    } else {
        accounts.resources.retain(|_, one| !filter.passes(one));
    }
    Ok(())
}

fn is_not_over_allocated(resource: &Resource) -> Result<(), Reject> {
    match resource.allocated() <= WHOLE {
        true => Ok(()),
        false => Err(refused("You can not allocate more than 100% of a resource")),
    }
}
