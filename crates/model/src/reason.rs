//! Why a job waits or ended, spelled as `squeue` spells it.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($name:ident),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Reason { $($name),* }

        impl Reason {
            pub const ALL: &[Reason] = &[$(Reason::$name),*];

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
    // Limits of accounts and qualities of service.
    QOSGrpJobsLimit, QOSGrpSubmitJobsLimit, QOSGrpWallLimit, QOSMaxJobsPerUserLimit, QOSMaxSubmitJobPerUserLimit,
    QOSMaxWallDurationPerJobLimit, MaxJobsPerAccount, MaxSubmitJobsPerAccount, QOSResourceLimit, QOSUsageThreshold,
    QOSNotAllowed, AccountNotAllowed, AssocGrpJobsLimit, AssocGrpSubmitJobsLimit, AssocGrpWallLimit,
    AssocMaxJobsLimit, AssocMaxSubmitJobLimit, AssocMaxWallDurationPerJobLimit, QOSGrpCpuLimit, QOSGrpMemLimit,
    QOSGrpNodeLimit, QOSGrpBB, QOSGrpBilling, QOSGrpEnergy, QOSGrpGRES, QOSGrpLicense, QOSGrpUnknown,
    QOSGrpCPUMinutesLimit, QOSGrpMemoryMinutes, QOSGrpNodeMinutes, QOSGrpBBMinutes, QOSGrpBillingMinutes,
    QOSGrpEnergyMinutes, QOSGrpGRESMinutes, QOSGrpLicenseMinutes, QOSGrpUnknownMinutes, QOSGrpCPURunMinutesLimit,
    QOSGrpMemoryRunMinutes, QOSGrpNodeRunMinutes, QOSGrpBBRunMinutes, QOSGrpBillingRunMinutes,
    QOSGrpEnergyRunMinutes, QOSGrpGRESRunMinutes, QOSGrpLicenseRunMinutes, QOSGrpUnknownRunMinutes,
    QOSMaxCpuPerJobLimit, QOSMaxMemoryPerJob, QOSMaxNodePerJobLimit, QOSMaxBBPerJob, QOSMaxBillingPerJob,
    QOSMaxEnergyPerJob, QOSMaxGRESPerJob, QOSMaxLicensePerJob, QOSMaxUnknownPerJob, QOSMaxCpuPerNode,
    QOSMaxMemoryPerNode, QOSMaxBBPerNode, QOSMaxBillingPerNode, QOSMaxEnergyPerNode, QOSMaxGRESPerNode,
    QOSMaxLicensePerNode, QOSMaxUnknownPerNode, QOSMaxCpuPerUserLimit, QOSMaxMemoryPerUser, QOSMaxNodePerUserLimit,
    QOSMaxBBPerUser, QOSMaxBillingPerUser, QOSMaxEnergyPerUser, QOSMaxGRESPerUser, QOSMaxLicensePerUser,
    QOSMaxUnknownPerUser, QOSMaxCpuMinutesPerJobLimit, QOSMaxMemoryMinutesPerJob, QOSMaxNodeMinutesPerJob,
    QOSMaxBBMinutesPerJob, QOSMaxBillingMinutesPerJob, QOSMaxEnergyMinutesPerJob, QOSMaxGRESMinutesPerJob,
    QOSMaxLicenseMinutesPerJob, QOSMaxUnknownMinutesPerJob, QOSMinCpuNotSatisfied, QOSMinMemory, QOSMinNode,
    QOSMinBB, QOSMinBilling, QOSMinEnergy, QOSMinGRES, QOSMinLicense, QOSMinUnknown, MaxCpuPerAccount,
    MaxMemoryPerAccount, MaxNodePerAccount, MaxBBPerAccount, MaxBillingPerAccount, MaxEnergyPerAccount,
    MaxGRESPerAccount, MaxLicensePerAccount, MaxUnknownPerAccount, AssocGrpCpuLimit, AssocGrpMemLimit,
    AssocGrpNodeLimit, AssocGrpBB, AssocGrpBilling, AssocGrpEnergy, AssocGrpGRES, AssocGrpLicense, AssocGrpUnknown,
    AssocGrpCPUMinutesLimit, AssocGrpMemMinutes, AssocGrpNodeMinutes, AssocGrpBBMinutes, AssocGrpBillingMinutes,
    AssocGrpEnergyMinutes, AssocGrpGRESMinutes, AssocGrpLicenseMinutes, AssocGrpUnknownMinutes,
    AssocGrpCPURunMinutesLimit, AssocGrpMemRunMinutes, AssocGrpNodeRunMinutes, AssocGrpBBRunMinutes,
    AssocGrpBillingRunMinutes, AssocGrpEnergyRunMinutes, AssocGrpGRESRunMinutes, AssocGrpLicenseRunMinutes,
    AssocGrpUnknownRunMinutes, AssocMaxCpuPerJobLimit, AssocMaxMemPerJob, AssocMaxNodePerJobLimit, AssocMaxBBPerJob,
    AssocMaxBillingPerJob, AssocMaxEnergyPerJob, AssocMaxGRESPerJob, AssocMaxLicensePerJob, AssocMaxUnknownPerJob,
    AssocMaxCpuPerNode, AssocMaxMemPerNode, AssocMaxBBPerNode, AssocMaxBillingPerNode, AssocMaxEnergyPerNode,
    AssocMaxGRESPerNode, AssocMaxLicensePerNode, AssocMaxUnknownPerNode, AssocMaxCpuMinutesPerJobLimit,
    AssocMaxMemMinutesPerJob, AssocMaxNodeMinutesPerJob, AssocMaxBBMinutesPerJob, AssocMaxBillingMinutesPerJob,
    AssocMaxEnergyMinutesPerJob, AssocMaxGRESMinutesPerJob, AssocMaxLicenseMinutesPerJob,
    AssocMaxUnknownMinutesPerJob, MaxBBRunMinsPerAccount, MaxBillingRunMinsPerAccount, MaxCpuRunMinsPerAccount,
    MaxEnergyRunMinsPerAccount, MaxGRESRunMinsPerAccount, MaxNodeRunMinsPerAccount, MaxLicenseRunMinsPerAccount,
    MaxMemoryRunMinsPerAccount, MaxUnknownRunMinsPerAccount, MaxBBRunMinsPerUser, MaxBillingRunMinsPerUser,
    MaxCpuRunMinsPerUser, MaxEnergyRunMinsPerUser, MaxGRESRunMinsPerUser, MaxNodeRunMinsPerUser,
    MaxLicenseRunMinsPerUser, MaxMemoryRunMinsPerUser, MaxUnknownRunMinsPerUser, AssocMaxCPURunMinutesLimit,
    AssocMaxMemRunMinutes, AssocMaxNodeRunMinutes, AssocMaxBBRunMinutes, AssocMaxBillingRunMinutes,
    AssocMaxEnergyRunMinutes, AssocMaxGRESRunMinutes, AssocMaxLicenseRunMinutes, AssocMaxUnknownRunMinutes,
}

impl Reason {
    /// A limit of an account or a quality of service: these come last.
    pub fn is_limit(self) -> bool {
        self >= Reason::QOSGrpJobsLimit
    }

    /// A limit that use counts for which is forgotten with time, or what running jobs may still use.
    pub fn is_limit_on_time(self) -> bool {
        let word = self.word();
        self.is_limit() && ["Minutes", "RunMins", "GrpWall"].iter().any(|part| word.contains(part))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(self.word())
    }
}
