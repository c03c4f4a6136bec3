//! Leaves where the switches above them do not matter: exactly so many, with the deficit aimed at; fuller ones rather than
//! emptier ones, earlier rather than later.
use super::leaves::{Aim, Item};

/// The deficit reached, and the leaves. Items are sorted, the fullest first.
pub(super) fn choose(items: &[Item], k: u32, aim: Aim) -> Option<(u32, Vec<u32>)> {
    let most = aim.most();
    let parts = Parts::new(items, most);
    let above = Above::new(&parts, k, most);
    let deficit = aim.deficits().find(|deficit| above.table.has(0, 0, *deficit))?;
    Some((deficit, above.walk(&parts, k, deficit)))
}

/// Items by what they may do. Of leaves that are equal, only the last may be left out, and only the first taken in.
pub(super) struct Parts<'i> {
    items: &'i [Item],
    /// So many are fuller than the last of the fullest.
    pub n_above: usize,
    /// So many are as full.
    pub n_equal: usize,
    /// Fuller ones that may be left out, and emptier ones that may be taken in.
    pub loose: Vec<usize>,
    pub spare: Vec<usize>,
}

impl<'i> Parts<'i> {
    pub fn new(items: &'i [Item], most: u32) -> Self {
        let n_above = items.partition_point(|item| item.leave > 0);
        let n_equal = items[n_above..].partition_point(|item| item.take == 0);
        let (mut loose, mut spare) = (Vec::new(), Vec::new());
        let mut at = 0;
        for alike in items.chunk_by(|one, other| one.count == other.count) {
            let Item { take, leave, .. } = alike[0];
            let n_may = |cost: u32| alike.len().min((most / cost) as usize);
            if leave > 0 {
                loose.extend(at + alike.len() - n_may(leave)..at + alike.len());
            } else if take > 0 {
                spare.extend(at..at + n_may(take));
            }
            at += alike.len();
        }
        Parts { items, n_above, n_equal, loose, spare }
    }
}

/// Sets of deficits: for each item on, and a number of leaves.
struct Table {
    bits: Vec<u64>,
    n_columns: usize,
    n_words: usize,
    most: u32,
}

impl Table {
    fn new(n_rows: usize, n_columns: usize, most: u32) -> Table {
        let n_words = most as usize / 64 + 1;
        Table { bits: vec![0; n_rows * n_columns * n_words], n_columns, n_words, most }
    }

    fn cell(&self, row: usize, column: usize) -> usize {
        (row * self.n_columns + column) * self.n_words
    }

    fn has(&self, row: usize, column: usize, deficit: u32) -> bool {
        self.bits[self.cell(row, column) + deficit as usize / 64] >> (deficit % 64) & 1 == 1
    }

    /// Adds the deficits of a cell of the next row, each more by `shift`; those that are too many fall away.
    fn add(&mut self, row: usize, column: usize, from: usize, shift: u32) {
        if shift > self.most {
            return;
        }
        let (to, from) = (self.cell(row, column), self.cell(row + 1, from));
        let (words, bits) = (shift as usize / 64, shift % 64);
        for at in (words..self.n_words).rev() {
            let mut word = self.bits[from + at - words] << bits;
            if bits > 0 && at > words {
                word |= self.bits[from + at - words - 1] >> (64 - bits);
            }
            self.bits[to + at] |= word;
        }
        let over = self.most % 64;
        if over < 63 {
            self.bits[to + self.n_words - 1] &= (1 << (over + 1)) - 1;
        }
    }
}

/// What emptier leaves can bring: by the spare item on, and how many are taken in.
struct Below(Table);

impl Below {
    fn new(parts: &Parts, most: u32) -> Below {
        let n_spare = parts.spare.len();
        let mut table = Table::new(n_spare + 1, n_spare.min(most as usize) + 1, most);
        let end = table.cell(n_spare, 0);
        table.bits[end] = 1;
        for row in (0..n_spare).rev() {
            let take = parts.items[parts.spare[row]].take;
            for n in 0..table.n_columns {
                table.add(row, n, n, 0);
                if n > 0 {
                    table.add(row, n, n - 1, take);
                }
            }
        }
        Below(table)
    }
}

/// What all can bring: by the loose item on, and how many have been left out before it.
struct Above {
    table: Table,
    below: Below,
}

impl Above {
    fn new(parts: &Parts, k: u32, most: u32) -> Above {
        let below = Below::new(parts, most);
        let n_loose = parts.loose.len();
        let mut table = Table::new(n_loose + 1, n_loose.min(most as usize) + 1, most);
        for n_out in 0..table.n_columns {
            let to = table.cell(n_loose, n_out);
            for n_in in n_taken_in(parts, k, n_out, &below) {
                let from = below.0.cell(0, n_in);
                for word in 0..table.n_words {
                    table.bits[to + word] |= below.0.bits[from + word];
                }
            }
        }
        for row in (0..n_loose).rev() {
            let leave = parts.items[parts.loose[row]].leave;
            for n_out in 0..table.n_columns {
                table.add(row, n_out, n_out, 0);
                if n_out + 1 < table.n_columns {
                    table.add(row, n_out, n_out + 1, leave);
                }
            }
        }
        Above { table, below }
    }

    /// The choice behind a deficit: whatever can be taken early is.
    fn walk(&self, parts: &Parts, k: u32, mut deficit: u32) -> Vec<u32> {
        let mut left_out = vec![false; parts.n_above];
        let mut n_out = 0;
        for (row, at) in parts.loose.iter().enumerate() {
            if !self.table.has(row + 1, n_out, deficit) {
                left_out[*at] = true;
                n_out += 1;
                deficit -= parts.items[*at].leave;
            }
        }
        let mut chosen: Vec<usize> = (0..parts.n_above).filter(|at| !left_out[*at]).collect();
        let below = &self.below.0;
        let fewest = n_taken_in(parts, k, n_out, &self.below).find(|n_in| below.has(0, *n_in, deficit));
        let mut n_in = fewest.expect("the table knows a way");
        let n_equal = k as usize - chosen.len() - n_in;
        chosen.extend(parts.n_above..parts.n_above + n_equal);
        for (row, at) in parts.spare.iter().enumerate() {
            let take = parts.items[*at].take;
            if n_in > 0 && take <= deficit && below.has(row + 1, n_in - 1, deficit - take) {
                chosen.push(*at);
                n_in -= 1;
                deficit -= take;
            }
        }
        chosen.into_iter().map(|at| parts.items[at].leaf).collect()
    }
}

/// How many emptier leaves may be taken in when so many fuller ones are left out: the equal ones make up the number.
fn n_taken_in(parts: &Parts, k: u32, n_out: usize, below: &Below) -> impl Iterator<Item = usize> + use<> {
    let wanted = (k as usize + n_out).checked_sub(parts.n_above);
    let (n_equal, n_columns) = (parts.n_equal, below.0.n_columns);
    wanted.into_iter().flat_map(move |wanted| wanted.saturating_sub(n_equal)..(wanted + 1).min(n_columns))
}
