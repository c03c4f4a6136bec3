//! Why a job waits or ended, spelled as `squeue` spells it.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($name:ident),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Reason { $($name),* }

        impl Reason {
            /// The word users see: the variant's own name.
            pub fn word(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name)),* }
            }
        }

        impl FromStr for Reason {
            type Err = ();
            fn from_str(text: &str) -> Result<Self, ()> {
                match text { $(stringify!($name) => Ok(Reason::$name),)* _ => Err(()) }
            }
        }
    };
}

reasons! {
    Priority, Dependency, DependencyNeverSatisfied, Resources, PartitionNodeLimit, PartitionTimeLimit, PartitionDown,
    PartitionInactive, PartitionConfig, JobHeldAdmin, JobHeldUser, JobHoldMaxRequeue, BeginTime, Licenses, Reservation,
    ReservationDeleted, ReqNodeNotAvail, BadConstraints, Constraints, SystemFailure, JobLaunchFailure, NonZeroExitCode,
    RaisedSignal, TimeLimit, NodeDown, InvalidAccount, InvalidQOS, Cleaning, Prolog, JobArrayTaskLimit,
    BurstBufferResources, BurstBufferStageIn, BurstBufferOperation, DeadLine, OutOfMemory, MaxMemPerLimit, ReservationInvalid,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(self.word())
    }
}
