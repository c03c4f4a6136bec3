//! Strings and expressions that users send: too long, malformed, costly, or made for terminals.
