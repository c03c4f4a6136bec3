//! What several crates' tests need and no product code does.
pub mod hostile_values;
