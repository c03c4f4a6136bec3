//! The network in a terminal: one row a unit, one mark a node, a letter for each job.
use model::duration;

use super::scene::{Cell, Scene, Unit};

/// Colours that are told apart on dark and light grounds alike.
const COLOURS: [u8; 12] = [33, 208, 70, 170, 37, 214, 99, 160, 30, 136, 63, 125];

/// At most so many jobs are listed below the picture.
const JOBS_MAX: usize = 20;

pub fn draw(scene: &Scene, has_colour: bool) -> String {
    let mut out = format!(
        "{}: topology {} ({}), {} nodes in {} {}, {} free\n\n",
        scene.cluster_name,
        scene.topology,
        scene.kind,
        scene.n_nodes(),
        scene.units.len(),
        if scene.kind == "block" { "blocks" } else { "racks" },
        scene.n_free(),
    );
    let width = scene.units.iter().map(|unit| unit.name.chars().count()).max().unwrap_or(0);
    let depth = scene.groups.iter().map(|group| group.level).max().unwrap_or(0);
    for (at, unit) in scene.units.iter().enumerate() {
        // A group is named above its first unit, the widest first.
        let mut opening: Vec<_> = scene.groups.iter().filter(|group| group.units.start == at).collect();
        opening.sort_by_key(|group| std::cmp::Reverse(group.level));
        for group in opening {
            let indent = "  ".repeat((depth - group.level) as usize);
            let n_free: usize = scene.units[group.units.clone()].iter().map(Unit::n_free).sum();
            out.push_str(&format!("{indent}{} ({n_free} free)\n", group.name));
        }
        let indent = "  ".repeat(depth as usize);
        let marks: String = unit.cells.iter().map(|cell| mark(scene, cell, has_colour)).collect();
        let (n_free, n_nodes) = (unit.n_free(), unit.cells.len());
        out.push_str(&format!("{indent}{:width$}  {marks}  {n_free} of {n_nodes} free\n", unit.name));
    }
    out.push_str(&legend(scene, has_colour));
    out
}

fn mark(scene: &Scene, cell: &Cell, has_colour: bool) -> String {
    match cell.job {
        Some(id) => {
            let letter = scene.letter(id);
            let colour = COLOURS[scene.colour(id) % COLOURS.len()];
            if has_colour { format!("\x1b[48;5;{colour};97m{letter}\x1b[0m") } else { letter.to_string() }
        }
        None if cell.is_free => "·".into(),
        None if cell.state.starts_with("blocked") => "#".into(),
        None if cell.state.starts_with("drain") => "/".into(),
        None if has_colour => "\x1b[31mx\x1b[0m".into(),
        None => "x".into(),
    }
}

fn legend(scene: &Scene, has_colour: bool) -> String {
    let mut out = String::from("\n");
    for job in scene.jobs.iter().take(JOBS_MAX) {
        let cell = Cell { node: String::new(), state: String::new(), job: Some(job.id), is_free: false };
        let units = if job.n_units == 1 { "1 unit".to_string() } else { format!("{} units", job.n_units) };
        let mark = mark(scene, &cell, has_colour);
        out.push_str(&format!("  {mark}  job {} {} ({}) on {}, {units}\n", job.id, job.name, job.user, job.nodes));
    }
    if scene.jobs.len() > JOBS_MAX {
        out.push_str(&format!("     and {} more jobs\n", scene.jobs.len() - JOBS_MAX));
    }
    out.push_str("  ·  idle   #  kept free by a job   /  drained   x  down or silent\n\n");
    out.push_str(&summary(scene));
    out
}

pub fn summary(scene: &Scene) -> String {
    let mut out = format!(
        "Fragmentation {:.0} %: share of the free nodes in units that are partly busy.\n",
        scene.fragmentation() * 100.0
    );
    match scene.largest() {
        Some(unit) => out.push_str(&format!(
            "Largest free: {} on {} now.\n",
            super::super::check::count(unit.n_free(), "node"),
            unit.name
        )),
        None => out.push_str("Largest free: nothing is free now.\n"),
    }
    if let Some((unit, secs)) = scene.next_whole() {
        let (name, n_nodes) = (&unit.name, unit.cells.len());
        out.push_str(&format!("Next whole: {name} ({n_nodes} nodes) in {} at the latest.\n", duration::show(secs)));
    }
    out
}
