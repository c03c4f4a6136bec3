//! Who a caller is, and for whom it may act: uids, groups, nodes, certificates, tokens.
