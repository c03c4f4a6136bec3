//! The words of `TopologyParam`.
use model::topology::TopologyRules;

/// Sets what each word asks for; `wrong` hears of those that nobody knows.
pub(crate) fn apply(text: &str, rules: &mut TopologyRules, mut wrong: impl FnMut(String)) {
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.to_lowercase().as_str() {
            "switchasnoderank" | "blockasnoderank" => rules.ranks_by_unit = true,
            "topooptional" => rules.is_optional = true,
            "dragonfly" => rules.dragonfly = true,
            // Every agent has a stream of its own to a controller; nobody passes messages on for another.
            "routetree" | "routepart" => {
                rules.routes.push(word.to_string());
                wrong(format!("{word} is without effect here: nodes pass no messages on"));
            }
            lower => match lower.strip_prefix("topomaxsizeunroll=").map(|count| count.parse()) {
                Some(Ok(count)) => rules.max_size_unroll = count,
                Some(Err(_)) => wrong(format!("{word} must be a number")),
                None => wrong(format!("TopologyParam does not know {word}: ignored")),
            },
        }
    }
}
