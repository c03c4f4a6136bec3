//! The reason that each limit has.
use model::Reason;

/// Whose limit, and on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    QosGroup,
    QosGroupMinutes,
    QosGroupRunMinutes,
    QosJob,
    QosNode,
    QosUser,
    QosJobMinutes,
    QosLeast,
    QosAccount,
    QosUserRunMinutes,
    QosAccountRunMinutes,
    Group,
    GroupMinutes,
    GroupRunMinutes,
    Job,
    Node,
    JobMinutes,
    RunMinutes,
}

/// The reason of a limit on one resource.
pub(super) fn reason(form: Form, resource: &str) -> Reason {
    let word = word(form, kind(resource));
    word.parse().or_else(|()| self::word(form, "Unknown").parse()).unwrap_or(Reason::QOSResourceLimit)
}

fn kind(resource: &str) -> &'static str {
    match resource.split('/').next().unwrap_or_default() {
        "cpu" => "Cpu",
        "mem" => "Memory",
        "node" => "Node",
        "energy" => "Energy",
        "billing" => "Billing",
        "gres" => "GRES",
        "license" => "License",
        "bb" => "BB",
        _ => "Unknown",
    }
}

/// Slurm's spelling has grown over the years.
fn word(form: Form, kind: &str) -> String {
    let is_old = matches!(kind, "Cpu" | "Node");
    let limit = if is_old { "Limit" } else { "" };
    let cpu_limit = if kind == "Cpu" { "Limit" } else { "" };
    let minutes_of = if kind == "Cpu" { "CPU" } else { kind };
    let short = if kind == "Memory" { "Mem" } else { kind };
    let short_minutes_of = if kind == "Cpu" { "CPU" } else { short };
    let group_limit = if kind == "Memory" { "Limit" } else { limit };
    match form {
        Form::QosGroup => format!("QOSGrp{short}{group_limit}"),
        Form::QosGroupMinutes => format!("QOSGrp{minutes_of}Minutes{cpu_limit}"),
        Form::QosGroupRunMinutes => format!("QOSGrp{minutes_of}RunMinutes{cpu_limit}"),
        Form::QosJob => format!("QOSMax{kind}PerJob{limit}"),
        Form::QosNode => format!("QOSMax{kind}PerNode"),
        Form::QosUser => format!("QOSMax{kind}PerUser{limit}"),
        Form::QosJobMinutes => format!("QOSMax{kind}MinutesPerJob{cpu_limit}"),
        Form::QosLeast if kind == "Cpu" => "QOSMinCpuNotSatisfied".into(),
        Form::QosLeast => format!("QOSMin{kind}"),
        Form::QosAccount => format!("Max{kind}PerAccount"),
        Form::QosUserRunMinutes => format!("Max{kind}RunMinsPerUser"),
        Form::QosAccountRunMinutes => format!("Max{kind}RunMinsPerAccount"),
        Form::Group => format!("AssocGrp{short}{group_limit}"),
        Form::GroupMinutes => format!("AssocGrp{short_minutes_of}Minutes{cpu_limit}"),
        Form::GroupRunMinutes => format!("AssocGrp{short_minutes_of}RunMinutes{cpu_limit}"),
        Form::Job => format!("AssocMax{short}PerJob{limit}"),
        Form::Node => format!("AssocMax{short}PerNode"),
        Form::JobMinutes => format!("AssocMax{short}MinutesPerJob{cpu_limit}"),
        // Slurm takes this limit and never looks at it: the word is ours.
        Form::RunMinutes => format!("AssocMax{short_minutes_of}RunMinutes{cpu_limit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_on_every_resource_has_slurms_word() {
        let forms = [
            (Form::QosGroup, ["QOSGrpCpuLimit", "QOSGrpMemLimit", "QOSGrpNodeLimit", "QOSGrpGRES"]),
            (
                Form::QosGroupMinutes,
                ["QOSGrpCPUMinutesLimit", "QOSGrpMemoryMinutes", "QOSGrpNodeMinutes", "QOSGrpGRESMinutes"],
            ),
            (Form::QosJob, ["QOSMaxCpuPerJobLimit", "QOSMaxMemoryPerJob", "QOSMaxNodePerJobLimit", "QOSMaxGRESPerJob"]),
            (
                Form::QosUser,
                ["QOSMaxCpuPerUserLimit", "QOSMaxMemoryPerUser", "QOSMaxNodePerUserLimit", "QOSMaxGRESPerUser"],
            ),
            (Form::QosAccount, ["MaxCpuPerAccount", "MaxMemoryPerAccount", "MaxNodePerAccount", "MaxGRESPerAccount"]),
            (
                Form::QosUserRunMinutes,
                ["MaxCpuRunMinsPerUser", "MaxMemoryRunMinsPerUser", "MaxNodeRunMinsPerUser", "MaxGRESRunMinsPerUser"],
            ),
            (Form::QosLeast, ["QOSMinCpuNotSatisfied", "QOSMinMemory", "QOSMinNode", "QOSMinGRES"]),
            (Form::Group, ["AssocGrpCpuLimit", "AssocGrpMemLimit", "AssocGrpNodeLimit", "AssocGrpGRES"]),
            (
                Form::GroupRunMinutes,
                [
                    "AssocGrpCPURunMinutesLimit",
                    "AssocGrpMemRunMinutes",
                    "AssocGrpNodeRunMinutes",
                    "AssocGrpGRESRunMinutes",
                ],
            ),
            (
                Form::Job,
                ["AssocMaxCpuPerJobLimit", "AssocMaxMemPerJob", "AssocMaxNodePerJobLimit", "AssocMaxGRESPerJob"],
            ),
            (
                Form::JobMinutes,
                [
                    "AssocMaxCpuMinutesPerJobLimit",
                    "AssocMaxMemMinutesPerJob",
                    "AssocMaxNodeMinutesPerJob",
                    "AssocMaxGRESMinutesPerJob",
                ],
            ),
        ];
        let run_minutes =
            ["AssocMaxCPURunMinutesLimit", "AssocMaxMemRunMinutes", "AssocMaxNodeRunMinutes", "AssocMaxGRESRunMinutes"];
        for (form, words) in forms.into_iter().chain([(Form::RunMinutes, run_minutes)]) {
            for (resource, expected) in ["cpu", "mem", "node", "gres/gpu"].into_iter().zip(words) {
                assert_eq!(reason(form, resource).word(), expected);
            }
        }
        assert_eq!(reason(Form::Group, "pages").word(), "AssocGrpUnknown");
    }
}
