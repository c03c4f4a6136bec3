//! When: the future in steps, and the first of them at which a job fits.
//!
//! What is held or promised stands as `Use`s on the spots of the `Room`; the future is read from there and nowhere else.
mod clock;
mod earliest;
mod stairs;
mod uses;
mod walk;

pub(crate) use clock::{Clock, Interval, Length, Slot};
pub(crate) use earliest::earliest;
pub(crate) use stairs::Stairs;
pub(crate) use uses::{Free, Use, Uses};
pub(crate) use walk::Calendar;
