//! The network as a picture: racks side by side, switches above them, every node a box in the colour of its job.
use super::scene::{Cell, Scene, Unit};
use super::text;

const COLOURS: [&str; 12] = [
    "#4c78a8", "#f58518", "#54a24b", "#b279a2", "#72b7b2", "#e6b800", "#9d755d", "#e45756", "#2a9d8f", "#8c6bb1",
    "#d67195", "#6b8e23",
];

/// What fits the number of racks.
struct Measure {
    column: usize,
    cell: usize,
    gap: usize,
    has_names: bool,
    columns: usize,
}

const MARGIN: usize = 24;
const HEADER: usize = 64;
const LEVEL: usize = 46;

pub fn draw(scene: &Scene) -> String {
    let measure = match scene.units.len() {
        0..=16 => Measure { column: 112, cell: 22, gap: 4, has_names: true, columns: 16 },
        17..=64 => Measure { column: 60, cell: 12, gap: 2, has_names: false, columns: 32 },
        _ => Measure { column: 30, cell: 6, gap: 1, has_names: false, columns: 60 },
    };
    let n_levels = scene.groups.iter().map(|group| group.level).max().unwrap_or(0) as usize;
    // Racks beyond the width of the picture go on below; lines to switches are drawn where one row holds them all.
    let n_rows = scene.units.len().div_ceil(measure.columns).max(1);
    let tallest = scene.units.iter().map(|unit| unit.cells.len()).max().unwrap_or(0);
    let row_height = tallest * (measure.cell + measure.gap) + 56;
    let top = HEADER + if n_rows == 1 { n_levels * LEVEL } else { 0 };
    let width = (scene.units.len().min(measure.columns) * measure.column + 2 * MARGIN).max(720);
    let legend = scene.jobs.len().min(24).div_ceil(2) * 20 + 96;
    let height = top + n_rows * row_height + legend;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fbfbfd\"/>\n"
    );
    let title = format!("{} · topology {} ({})", scene.cluster_name, scene.topology, scene.kind);
    label(&mut out, MARGIN, 30, 18, "#1f2933", "start", &title);
    let line = format!(
        "{} nodes, {} free, fragmentation {:.0} %",
        scene.n_nodes(),
        scene.n_free(),
        scene.fragmentation() * 100.0
    );
    label(&mut out, MARGIN, 50, 12, "#616e7c", "start", &line);
    if n_rows == 1 {
        switches(&mut out, scene, &measure, top, n_levels);
    }
    for (at, unit) in scene.units.iter().enumerate() {
        let x = MARGIN + at % measure.columns * measure.column;
        let y = top + at / measure.columns * row_height;
        rack(&mut out, scene, unit, &measure, (x, y));
    }
    let bottom = top + n_rows * row_height + 8;
    jobs(&mut out, scene, bottom, width);
    out.push_str("</svg>\n");
    out
}

fn label(out: &mut String, x: usize, y: usize, size: usize, fill: &str, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    out.push_str(&format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{fill}\" text-anchor=\"{anchor}\">{text}</text>\n"
    ));
}

/// The middle of what is below a switch.
fn middle(units: &std::ops::Range<usize>, measure: &Measure) -> usize {
    let left = MARGIN + units.start * measure.column;
    let right = MARGIN + units.end * measure.column;
    (left + right - measure.gap * 2) / 2
}

fn switches(out: &mut String, scene: &Scene, measure: &Measure, top: usize, n_levels: usize) {
    let y_of = |level: u32| top - LEVEL * level as usize + 4;
    // Lines first, so that boxes lie on them.
    for group in &scene.groups {
        let is_inside =
            |inner: &std::ops::Range<usize>| group.units.start <= inner.start && inner.end <= group.units.end;
        let below: Vec<_> = scene
            .groups
            .iter()
            .filter(|other| other.level < group.level && is_inside(&other.units))
            .filter(|other| {
                let between = |third: &super::scene::Group| {
                    other.level < third.level
                        && third.level < group.level
                        && third.units.start <= other.units.start
                        && other.units.end <= third.units.end
                };
                !scene.groups.iter().any(between)
            })
            .collect();
        let mut ends: Vec<(usize, usize)> =
            below.iter().map(|other| (middle(&other.units, measure), y_of(other.level))).collect();
        let bare = group.units.clone().filter(|unit| !below.iter().any(|other| other.units.contains(unit)));
        ends.extend(bare.map(|unit| (middle(&(unit..unit + 1), measure), top + 8)));
        let (x, y) = (middle(&group.units, measure), y_of(group.level) + 20);
        for (to_x, to_y) in ends {
            out.push_str(&format!(
                "<path d=\"M{x} {y} C{x} {} {to_x} {} {to_x} {to_y}\" fill=\"none\" stroke=\"#9aa5b1\" stroke-width=\"1.5\"/>\n",
                y + 12,
                to_y.saturating_sub(12),
            ));
        }
    }
    for group in scene.groups.iter().filter(|group| group.level as usize <= n_levels) {
        let (x, y) = (middle(&group.units, measure), y_of(group.level));
        let width = (group.name.chars().count() * 8 + 20).max(48);
        out.push_str(&format!(
            "<rect x=\"{}\" y=\"{y}\" width=\"{width}\" height=\"20\" rx=\"4\" fill=\"#323f4b\"/>\n",
            x.saturating_sub(width / 2)
        ));
        label(out, x, y + 14, 12, "#ffffff", "middle", &group.name);
    }
}

fn rack(out: &mut String, scene: &Scene, unit: &Unit, measure: &Measure, (x, y): (usize, usize)) {
    let width = measure.column - measure.gap * 4;
    let height = unit.cells.len() * (measure.cell + measure.gap) + measure.gap + 26;
    out.push_str(&format!(
        "<rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{height}\" rx=\"5\" fill=\"#ffffff\" stroke=\"#cbd2d9\"/>\n",
        y + 8
    ));
    let (size, name) = fitting(&unit.name, width);
    label(out, x + width / 2, y + 24, size, "#323f4b", "middle", &name);
    for (row, cell) in unit.cells.iter().enumerate() {
        let top = y + 32 + row * (measure.cell + measure.gap);
        node(out, scene, cell, measure, (x + measure.gap, top, width - 2 * measure.gap));
    }
}

/// The name in letters that fit the width; if none do, its end, in which names differ.
fn fitting(name: &str, width: usize) -> (usize, String) {
    let n_chars = name.chars().count();
    let n_fitting = |size: usize| width * 10 / (size * 6);
    match [12, 10, 9, 8, 7].into_iter().find(|size| n_chars <= n_fitting(*size)) {
        Some(size) => (size, name.into()),
        None => {
            let end = name.chars().skip(n_chars - n_fitting(7).saturating_sub(1).min(n_chars));
            (7, std::iter::once('…').chain(end).collect())
        }
    }
}

fn node(out: &mut String, scene: &Scene, cell: &Cell, measure: &Measure, (x, y, width): (usize, usize, usize)) {
    let (fill, ink, dash) = match cell.job {
        Some(id) => (COLOURS[scene.colour(id) % COLOURS.len()], "#ffffff", ""),
        None if cell.is_free => ("#edf1f5", "#616e7c", ""),
        None if cell.state.starts_with("blocked") => {
            ("#f7f2d8", "#7c6f1f", " stroke=\"#c9b458\" stroke-dasharray=\"3 2\"")
        }
        None if cell.state.starts_with("drain") => ("#fdebd3", "#8d5a10", " stroke=\"#e0a458\""),
        None => ("#fbdcdc", "#9b1c1c", " stroke=\"#d64545\""),
    };
    let job = cell.job.map(|id| format!(", job {id}")).unwrap_or_default();
    out.push_str(&format!(
        "<g><title>{} {}{job}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{}\" rx=\"2\" fill=\"{fill}\"{dash}/>\n",
        cell.node, cell.state, measure.cell
    ));
    if measure.has_names {
        let text_y = y + measure.cell - 7;
        label(out, x + 6, text_y, 11, ink, "start", &cell.node);
        let right = match cell.job {
            Some(id) => id.to_string(),
            None => cell.state.clone(),
        };
        label(out, x + width - 6, text_y, 10, ink, "end", &right);
    }
    out.push_str("</g>\n");
}

fn jobs(out: &mut String, scene: &Scene, top: usize, width: usize) {
    for (at, job) in scene.jobs.iter().take(24).enumerate() {
        let (x, y) = (MARGIN + at % 2 * (width / 2 - MARGIN), top + at / 2 * 20);
        let colour = COLOURS[at % COLOURS.len()];
        out.push_str(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"14\" height=\"14\" rx=\"2\" fill=\"{colour}\"/>\n"));
        let line = format!("job {} {} ({}): {}", job.id, job.name, job.user, job.nodes);
        let most = (width / 2 - 60) / 7;
        let line: String = match line.chars().count() > most {
            true => line.chars().take(most).chain(['…']).collect(),
            false => line,
        };
        label(out, x + 20, y + 12, 12, "#323f4b", "start", &line);
    }
    let rows = scene.jobs.len().min(24).div_ceil(2);
    for (at, line) in text::summary(scene).lines().enumerate() {
        label(out, MARGIN, top + rows * 20 + 24 + at * 18, 12, "#616e7c", "start", line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_racks_are_as_large_as_they_may_be() {
        assert_eq!(fitting("rack01", 96), (12, "rack01".into()));
        assert_eq!(fitting("rack01", 52), (12, "rack01".into()));
        assert_eq!(fitting("rack01", 26), (7, "rack01".into()));
        assert_eq!(fitting("building7-rack01", 26), (7, "…ack01".into()));
        assert_eq!(fitting("", 26), (12, "".into()));
    }
}
