//! Which CPUs of the machine a job's CPUs are. Where whole cores are handed out, the state counts CPUs core by core and cores socket by
//! socket; kernels often number them otherwise.
use std::path::Path;
use std::sync::OnceLock;

use model::CpuSet;
use model::agent::Bounds;

const SYSTEM: &str = "/sys/devices/system/cpu";

/// The machine's own numbers of these CPUs of a node that has `n_counted` counted so. A node that is not its whole machine, or none at
/// all (0), goes by the machine's numbers as they are.
pub fn of_machine(cpus: &CpuSet, n_counted: u32) -> CpuSet {
    static ORDER: OnceLock<Vec<u32>> = OnceLock::new();
    if n_counted == 0 {
        return cpus.clone();
    }
    numbered(cpus, n_counted, ORDER.get_or_init(|| order(Path::new(SYSTEM))))
}

/// What a run is held to, by the machine's numbers.
pub fn bounds(told: &Bounds) -> Bounds {
    let cpus = told.cpus.as_ref().map(|cpus| of_machine(cpus, told.n_cpus_by_core));
    Bounds { cpus, ..told.clone() }
}

fn numbered(cpus: &CpuSet, n_counted: u32, order: &[u32]) -> CpuSet {
    if order.len() as u32 != n_counted {
        return cpus.clone();
    }
    cpus.iter().filter_map(|cpu| order.get(cpu as usize).copied()).collect()
}

/// The machine's CPUs socket by socket, core by core; none if it does not tell.
fn order(system: &Path) -> Vec<u32> {
    let read = |file: String| std::fs::read_to_string(system.join(file)).ok();
    let Some(online) = read("online".into()).and_then(|text| text.parse::<CpuSet>().ok()) else { return Vec::new() };
    let number = |cpu: u32, what: &str| read(format!("cpu{cpu}/topology/{what}"))?.trim().parse::<i64>().ok();
    let place = |cpu: u32| Some((number(cpu, "physical_package_id")?, number(cpu, "core_id")?, cpu));
    let mut places: Vec<(i64, i64, u32)> = online.iter().map_while(place).collect();
    places.sort_unstable();
    if places.len() as u32 == online.len() { places.into_iter().map(|(.., cpu)| cpu).collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_the_kernel_numbers_otherwise_are_whole_cores_all_the_same() {
        let machine = std::env::temp_dir().join(format!("spur-numbering-{}", std::process::id()));
        std::fs::create_dir_all(&machine).unwrap();
        std::fs::write(machine.join("online"), "0-7\n").unwrap();
        // As most kernels do it: the second threads come after all the first ones, sockets in turn.
        for cpu in 0..8 {
            let folder = machine.join(format!("cpu{cpu}/topology"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("physical_package_id"), format!("{}\n", cpu % 2)).unwrap();
            std::fs::write(folder.join("core_id"), format!("{}\n", cpu % 4 / 2)).unwrap();
        }
        let order = order(&machine);
        assert_eq!(order, [0, 4, 2, 6, 1, 5, 3, 7]);
        let told = |list: &str, n| numbered(&list.parse().unwrap(), n, &order).to_string();
        assert_eq!((told("0-1", 8), told("0-3", 8), told("4-5", 8)), ("0,4".into(), "0,2,4,6".into(), "1,5".into()));
        assert_eq!(told("0-1", 16), "0-1", "a node that is not its machine");
        std::fs::remove_dir_all(machine.join("cpu3")).unwrap();
        assert_eq!(super::order(&machine), [0; 0]);
        std::fs::remove_dir_all(&machine).unwrap();
    }
}
