//! When: the future in steps, and the first of them at which a job fits.
//!
//! What is held or promised stands as `Use`s on the spots of the `Room`; the future is read from there and nowhere else.
//! Who holds a node is looked up when somebody first asks about that node, and ends are read as far as the future is
//! looked into: most of a large cluster is never asked about.
mod calendar;
mod clock;
mod earliest;
mod held;
mod running;
mod stairs;
mod uses;
mod walk;

pub(crate) use calendar::Calendar;
pub(crate) use clock::{Clock, Interval, Length, Slot};
pub(crate) use earliest::earliest;
pub(crate) use held::{Held, Release};
pub(crate) use running::Running;
pub(crate) use stairs::Stairs;
pub(crate) use uses::{Free, Use, Uses};
