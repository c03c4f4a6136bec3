//! Every call, by every kind of caller, with hostile values in every field.
