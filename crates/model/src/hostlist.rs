//! Lists of host names in Slurm's bracket form: `tux[0-3,12]`, `r[1-2]n[01-02]`, `block{b1}`.

use std::cmp::Ordering;
use std::fmt::{self, Write};

/// The most hosts that one range may name.
const RANGE_MAX: u64 = 65_536;
/// The most prefixes that the brackets before the last one may generate.
const PREFIXES_MAX: u64 = 65_536;
/// The most hosts that one list may name; keeps a mistyped list from filling the memory.
const LIST_MAX: u64 = 1 << 20;
/// The most bytes of all names of one list.
const LIST_MAX_BYTES: u64 = 64 << 20;
/// The most fixed text and the most brackets in one host name.
const TEXT_MAX: usize = 255;
const BRACKETS_MAX: usize = 16;
/// The longest run of digits that is read as a number.
const DIGITS_MAX: usize = 18;

const FUNCTIONS: [&str; 9] =
    ["block", "blockwith", "feature", "ring", "ringwith", "switch", "switchwith", "torus", "toruswith"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostlistError {
    /// A bracket or brace without its partner.
    Unbalanced {
        item: String,
    },
    /// What stands between brackets is neither a number nor a rising range.
    BadRange {
        item: String,
        range: String,
    },
    TooMany {
        item: String,
    },
    TooLong {
        item: String,
    },
    UnknownFunction {
        name: String,
    },
    /// A function met where no topology is at hand.
    Unresolved {
        function: String,
    },
    /// The resolver did not know what the function names.
    Refused {
        function: String,
        why: String,
    },
}

impl fmt::Display for HostlistError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbalanced { item } => write!(out, "hostlist \"{item}\": bracket without its partner"),
            Self::BadRange { item, range } => write!(out, "hostlist \"{item}\": invalid range \"{range}\""),
            Self::TooMany { item } => write!(out, "hostlist \"{item}\" names too many hosts"),
            Self::TooLong { item } => write!(out, "hostlist \"{item}\": host name too long"),
            Self::UnknownFunction { name } => write!(out, "hostlist function \"{name}{{}}\" is unknown"),
            Self::Unresolved { function } => write!(out, "hostlist function \"{function}\" cannot be used here"),
            Self::Refused { function, why } => write!(out, "hostlist function \"{function}\": {why}"),
        }
    }
}

impl std::error::Error for HostlistError {}

/// One element of a list, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Hosts(Vec<Piece>),
    Function { name: String, argument: String },
}

/// A part of a host name: fixed, or one of several numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    Ranges(Vec<Range>),
}

/// Numbers from `low` to `high`, each printed with at least `width` digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub low: u64,
    pub high: u64,
    pub width: usize,
}

/// All names of a list in the written order; functions are refused.
pub fn expand(list: &str) -> Result<Vec<String>, HostlistError> {
    expand_with(list, |name, argument| Err(HostlistError::Unresolved { function: format!("{name}{{{argument}}}") }))
}

/// As `expand`, with `resolve(name, argument)` to say which hosts a function means.
pub fn expand_with(
    list: &str,
    mut resolve: impl FnMut(&str, &str) -> Result<Vec<String>, HostlistError>,
) -> Result<Vec<String>, HostlistError> {
    let mut names = Vec::new();
    let mut n_bytes: u64 = 0;
    for text in split(list)? {
        match parse_item(text)? {
            Item::Function { name, argument } => names.extend(resolve(&name, &argument)?),
            Item::Hosts(pieces) => {
                let n_names = count(&pieces, text)?;
                n_bytes += n_names.saturating_mul(longest(&pieces));
                if names.len() as u64 + n_names > LIST_MAX || n_bytes > LIST_MAX_BYTES {
                    return Err(HostlistError::TooMany { item: text.to_owned() });
                }
                append_names(&pieces, &mut names);
            }
        }
    }
    Ok(names)
}

/// The items of a list, unexpanded.
pub fn parse(list: &str) -> Result<Vec<Item>, HostlistError> {
    split(list)?.into_iter().map(parse_item).collect()
}

/// The shortest list naming these hosts: each once, in natural order, one bracket a prefix.
pub fn compress<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<S> = names.into_iter().collect();
    let mut hosts: Vec<Host<'_>> = names.iter().map(|name| Host::of(name.as_ref())).collect();
    hosts.sort_unstable_by(Host::natural_cmp);
    hosts.dedup();
    join(&hosts)
}

/// A list that keeps the order and repetitions given; only neighbours share a bracket.
pub fn compress_in_order<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<S> = names.into_iter().collect();
    let hosts: Vec<Host<'_>> = names.iter().map(|name| Host::of(name.as_ref())).collect();
    join(&hosts)
}

/// `n9` before `n10`: by what precedes the last number, then by that number, then by its padding.
pub fn natural_cmp(a: &str, b: &str) -> Ordering {
    Host::of(a).natural_cmp(&Host::of(b))
}

/// Cuts at commas and blanks outside brackets and braces; empty items vanish.
fn split(list: &str) -> Result<Vec<&str>, HostlistError> {
    let mut items = Vec::new();
    let mut start = 0;
    let mut open = Vec::new();
    for (at, byte) in list.bytes().enumerate() {
        let closes = match byte {
            b'[' => Some(b']'),
            b'{' => Some(b'}'),
            _ => None,
        };
        if let Some(closing) = closes {
            open.push(closing);
        } else if byte == b']' || byte == b'}' {
            if open.pop() != Some(byte) {
                return Err(HostlistError::Unbalanced { item: list[start..].to_owned() });
            }
        } else if open.is_empty() && (byte == b',' || byte.is_ascii_whitespace()) {
            items.push(&list[start..at]);
            start = at + 1;
        }
    }
    if !open.is_empty() {
        return Err(HostlistError::Unbalanced { item: list[start..].to_owned() });
    }
    items.push(&list[start..]);
    items.retain(|item| !item.is_empty());
    Ok(items)
}

fn parse_item(item: &str) -> Result<Item, HostlistError> {
    if let Some((name, rest)) = item.split_once('{') {
        let Some(argument) = rest.strip_suffix('}') else {
            return Err(HostlistError::Unbalanced { item: item.to_owned() });
        };
        if !FUNCTIONS.contains(&name) {
            return Err(HostlistError::UnknownFunction { name: name.to_owned() });
        }
        return Ok(Item::Function { name: name.to_owned(), argument: argument.to_owned() });
    }
    let mut pieces = Vec::new();
    let mut rest = item;
    while let Some((text, after)) = rest.split_once('[') {
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        let Some((ranges, after)) = after.split_once(']') else {
            return Err(HostlistError::Unbalanced { item: item.to_owned() });
        };
        let ranges = ranges.split(',').map(|range| parse_range(item, range)).collect::<Result<_, _>>()?;
        pieces.push(Piece::Ranges(ranges));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(Item::Hosts(pieces))
}

fn parse_range(item: &str, range: &str) -> Result<Range, HostlistError> {
    let bad = || HostlistError::BadRange { item: item.to_owned(), range: range.to_owned() };
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    let width = low.len();
    let low = parse_number(low).ok_or_else(bad)?;
    let high = parse_number(high).ok_or_else(bad)?;
    if high < low {
        return Err(bad());
    }
    if high - low >= RANGE_MAX {
        return Err(HostlistError::TooMany { item: item.to_owned() });
    }
    Ok(Range { low, high, width })
}

fn parse_number(digits: &str) -> Option<u64> {
    let is_number = (1..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().expect("at most 18 digits fit"))
}

/// How many hosts the pieces name together, if that is not too many.
fn count(pieces: &[Piece], item: &str) -> Result<u64, HostlistError> {
    let mut total: u64 = 1;
    let mut brackets = 0;
    let mut text_length = 0;
    for piece in pieces {
        let ranges = match piece {
            Piece::Text(text) => {
                text_length += text.len();
                continue;
            }
            Piece::Ranges(ranges) => ranges,
        };
        brackets += 1;
        if total > PREFIXES_MAX || brackets > BRACKETS_MAX {
            return Err(HostlistError::TooMany { item: item.to_owned() });
        }
        total = total.saturating_mul(ranges.iter().map(|range| range.high - range.low + 1).sum());
    }
    if text_length > TEXT_MAX {
        return Err(HostlistError::TooLong { item: item.to_owned() });
    }
    Ok(total)
}

/// The bytes of the longest name that the pieces make.
fn longest(pieces: &[Piece]) -> u64 {
    let of = |piece: &Piece| match piece {
        Piece::Text(text) => text.len(),
        Piece::Ranges(ranges) => {
            ranges.iter().map(|range| range.width.max(decimal_digits(range.high))).max().unwrap_or(0)
        }
    };
    pieces.iter().map(of).sum::<usize>() as u64
}

/// The last bracket runs fastest; of those before it the first does, as Slurm has them.
fn append_names(pieces: &[Piece], names: &mut Vec<String>) {
    let brackets: Vec<usize> = (0..pieces.len()).filter(|at| matches!(pieces[*at], Piece::Ranges(_))).collect();
    let order = brackets.last().into_iter().chain(&brackets[..brackets.len().saturating_sub(1)]);
    let order: Vec<(usize, Vec<(u64, usize)>)> = order.map(|at| (*at, numbers(&pieces[*at]))).collect();
    let mut chosen = vec![0; order.len()];
    loop {
        let mut name = String::new();
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => name.push_str(text),
                Piece::Ranges(_) => {
                    let place = order.iter().position(|(bracket, _)| *bracket == at).expect("all brackets are there");
                    let (number, width) = order[place].1[chosen[place]];
                    append_number(&mut name, number, width);
                }
            }
        }
        names.push(name);
        let Some(next) = (0..order.len()).find(|place| chosen[*place] + 1 < order[*place].1.len()) else { return };
        chosen[next] += 1;
        chosen[..next].fill(0);
    }
}

/// What a bracket stands for, each with its width.
fn numbers(piece: &Piece) -> Vec<(u64, usize)> {
    match piece {
        Piece::Text(_) => Vec::new(),
        Piece::Ranges(ranges) => {
            let of = |range: &Range| (range.low..=range.high).map(|number| (number, range.width)).collect::<Vec<_>>();
            ranges.iter().flat_map(of).collect()
        }
    }
}

fn append_number(text: &mut String, number: u64, width: usize) {
    write!(text, "{number:0width$}").expect("a String takes everything");
}

/// A host name cut before its trailing digits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Host<'a> {
    prefix: &'a str,
    number: u64,
    /// How many digits were written; 0 for a name that ends in none.
    width: usize,
}

impl<'a> Host<'a> {
    fn of(name: &'a str) -> Self {
        let digits = name.bytes().rev().take(DIGITS_MAX).take_while(u8::is_ascii_digit).count();
        let (prefix, digits) = name.split_at(name.len() - digits);
        Host {
            prefix,
            number: digits.bytes().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')),
            width: digits.len(),
        }
    }

    fn natural_cmp(&self, other: &Self) -> Ordering {
        let prefixes =
            if self.prefix == other.prefix { Ordering::Equal } else { cmp_chunks(self.prefix, other.prefix) };
        prefixes
            .then_with(|| (self.width > 0).cmp(&(other.width > 0)))
            .then_with(|| self.number.cmp(&other.number))
            .then_with(|| self.width.cmp(&other.width))
    }

    /// Whether a range that ends here may go on with `next`.
    fn precedes(&self, next: &Self, range_width: usize) -> bool {
        next.number == self.number + 1 && next.width == range_width.max(decimal_digits(next.number))
    }
}

fn decimal_digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Compares text against text and number against number, from the left.
fn cmp_chunks(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    while let (Some(&x), Some(&y)) = (left.first(), right.first()) {
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (x, y) = (take_number(&mut left), take_number(&mut right));
            match x.len().cmp(&y.len()).then_with(|| x.cmp(y)) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        } else if x != y {
            return x.cmp(&y);
        } else {
            (left, right) = (&left[1..], &right[1..]);
        }
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Takes the digits at the front; gives them without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    let zeros = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
    &digits[zeros..]
}

fn join(hosts: &[Host<'_>]) -> String {
    let mut list = String::new();
    for group in hosts.chunk_by(|a, b| a.width > 0 && b.width > 0 && a.prefix == b.prefix) {
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(group[0].prefix);
        match group {
            [host] if host.width == 0 => {}
            [host] => append_number(&mut list, host.number, host.width),
            many => append_ranges(&mut list, many),
        }
    }
    list
}

fn append_ranges(list: &mut String, hosts: &[Host<'_>]) {
    let mut opening = '[';
    let mut rest = hosts;
    while let Some(first) = rest.first() {
        let mut length = 1;
        while length < rest.len()
            && (length as u64) < RANGE_MAX
            && rest[length - 1].precedes(&rest[length], first.width)
        {
            length += 1;
        }
        list.push(opening);
        opening = ',';
        append_number(list, first.number, first.width);
        if length > 1 {
            list.push('-');
            append_number(list, rest[length - 1].number, first.width);
        }
        rest = &rest[length..];
    }
    list.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check_expand(list: &str, names: &str) {
        assert_eq!(expand(list).expect(list).join(" "), names);
    }

    #[track_caller]
    fn check_compress(names: &str, list: &str) {
        assert_eq!(compress(names.split_whitespace()), list);
    }

    #[test]
    fn lists_expand_in_the_written_order() {
        check_expand("tux[0-3,12,18-20]", "tux0 tux1 tux2 tux3 tux12 tux18 tux19 tux20");
        check_expand("gpu[001-003]", "gpu001 gpu002 gpu003");
        check_expand("n[8-12]", "n8 n9 n10 n11 n12");
        check_expand("n[08-12]", "n08 n09 n10 n11 n12");
        check_expand("r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02");
        check_expand("r[1-2]n[1-2]c[1-2]", "r1n1c1 r1n1c2 r2n1c1 r2n1c2 r1n2c1 r1n2c2 r2n2c1 r2n2c2");
        check_expand("node[1-2]-ib", "node1-ib node2-ib");
        check_expand("a,b[1-2] c", "a b1 b2 c");
        check_expand("n[99-101]", "n99 n100 n101");
        check_expand("a[1-2][3-4]", "a13 a14 a23 a24");
        check_expand("[1-2]", "1 2");
        check_expand("", "");
        check_expand(",,", "");
    }

    #[test]
    fn a_wrong_range_rejects_the_whole_list() {
        for list in ["n[5-3]", "n[1-3", "n[a-b]", "n[1--3]", "n[]", "n[1,]", "n1]", "n[1, 2]", "n[[1]]", "n[1-2-3]"] {
            assert!(expand(&format!("ok,{list}")).is_err(), "{list}");
        }
        assert!(expand("n[1234567890123456789]").is_err());
    }

    #[test]
    fn no_list_grows_without_bound() {
        assert_eq!(expand("n[0-65535]").expect("just fits").len(), 65_536);
        assert!(expand("n[0-70000]").is_err());
        assert!(expand("n[0-65535]m[0-65535]").is_err());
        assert!(expand("n[0-999][0-999][0-999]").is_err());
        assert!(expand(&"x[0-65535],".repeat(17)).is_err());
        assert!(expand(&"[1]".repeat(100_000)).is_err());
        assert!(expand(&"x".repeat(256)).is_err());
    }

    #[test]
    fn functions_are_items_of_their_own() {
        assert_eq!(
            parse("n1,block{b[1-2],b5}").expect("valid"),
            vec![
                Item::Hosts(vec![Piece::Text("n1".into())]),
                Item::Function { name: "block".into(), argument: "b[1-2],b5".into() },
            ]
        );
        let error = expand("n1,switch{s4}").expect_err("no topology here");
        assert!(error.to_string().contains("switch{s4}"), "{error}");
        assert_eq!(expand("rack{1}"), Err(HostlistError::UnknownFunction { name: "rack".into() }));
        assert!(expand("switch{s4}x").is_err());
        let resolved = expand_with("a,switch{s4},b", |name, argument| Ok(vec![format!("{name}-{argument}")]));
        assert_eq!(resolved.expect("resolver knows all"), ["a", "switch-s4", "b"]);
    }

    #[test]
    fn names_compress_to_one_bracket_a_prefix() {
        check_compress("n1 n2 n3 n5", "n[1-3,5]");
        check_compress("n10 n9", "n[9-10]");
        check_compress("n09 n10", "n[09-10]");
        check_compress("n9 n010", "n[9,010]");
        check_compress("n1", "n1");
        check_compress("n1 n1 n1", "n1");
        check_compress("b a c1 c2", "a,b,c[1-2]");
        check_compress("r10n1 r9n1 r9n2", "r9n[1-2],r10n1");
        check_compress("n2 n1 n1a", "n[1-2],n1a");
        check_compress("login n1 n2", "login,n[1-2]");
        check_compress("n n1 n2", "n,n[1-2]");
        check_compress("a99999999999999999998 a99999999999999999999", "a99[999999999999999998-999999999999999999]");
        check_compress("", "");
    }

    #[test]
    fn order_is_kept_when_asked() {
        assert_eq!(compress_in_order(["n3", "n1", "n2"]), "n[3,1-2]");
        assert_eq!(compress_in_order(["a1", "b1", "a2", "a2"]), "a1,b1,a[2,2]");
    }

    #[test]
    fn a_long_run_is_cut_where_expand_would_refuse_it() {
        let names: Vec<String> = (0..70_000).map(|number| format!("n{number}")).collect();
        let list = compress(&names);
        assert_eq!(list, "n[0-65535,65536-69999]");
        assert_eq!(expand(&list).expect("own output"), names);
    }

    fn host() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-c]{1,2}[0-9]{0,3}",
            "[a-b][0-2]{1,2}[n-][0-9]{1,2}(-ib)?",
            "[0-9]{17,20}",
            (0u32..40).prop_map(|number| format!("n{number}")),
        ]
    }

    proptest! {
        #[test]
        fn expand_undoes_compress(mut names in prop::collection::vec(host(), 0..60)) {
            let list = compress(&names);
            names.sort_by(|a, b| natural_cmp(a, b));
            names.dedup();
            prop_assert_eq!(expand(&list).unwrap(), names);
        }

        #[test]
        fn expand_undoes_compress_in_order(names in prop::collection::vec(host(), 0..60)) {
            prop_assert_eq!(expand(&compress_in_order(&names)).unwrap(), names);
        }

        #[test]
        fn the_natural_order_is_an_order(a in host(), b in host(), c in host()) {
            prop_assert_eq!(natural_cmp(&a, &b), natural_cmp(&b, &a).reverse());
            prop_assert_eq!(natural_cmp(&a, &b) == Ordering::Equal, a == b);
            if natural_cmp(&a, &b).is_le() && natural_cmp(&b, &c).is_le() {
                prop_assert!(natural_cmp(&a, &c).is_le());
            }
        }

        #[test]
        fn no_text_panics(text in any::<String>(), near in "[a-b0-9,{}\\[\\] -]{0,24}") {
            let _ = expand(&text);
            let _ = expand(&near);
            compress([text.as_str(), near.as_str()]);
        }
    }
}
