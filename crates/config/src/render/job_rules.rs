//! `[jobs]`, and what of it stands at the top of the file.
use model::job_rules::JobRules;

use super::Text;

pub(super) fn render(text: &mut Text, rules: &JobRules) {
    let usual = JobRules::default();
    let of_steps = JobRules {
        kill_on_bad_exit: rules.kill_on_bad_exit,
        wait_secs: rules.wait_secs,
        may_spare: rules.may_spare,
        ..usual.clone()
    };
    if *rules == of_steps {
        return;
    }
    text.header("[jobs]");
    text.string("requeue_exit", &rules.requeue_exit.to_string());
    text.string("requeue_exit_hold", &rules.requeue_exit_hold.to_string());
    text.value("max_requeues", rules.max_requeues);
    text.value("requeue_delay", rules.requeue_delay_secs);
    text.value("appends_output", rules.appends_output);
    text.string("mail_domain", &rules.mail_domain);
    text.value("users_delete_reservations", rules.users_delete_reservations);
    text.value("users_set_triggers", rules.users_set_triggers);
    text.value("accounting_interval", rules.accounting_secs);
    text.value("max_script_bytes", rules.max_script_bytes);
}

pub(super) fn render_top(text: &mut Text, rules: &JobRules) {
    if rules.kill_on_bad_exit {
        text.value("kill_on_bad_exit", 1);
    }
    if rules.may_spare {
        text.value("may_spare_cores", 1);
    }
    if rules.wait_secs > 0 {
        text.value("srun_wait", rules.wait_secs);
    }
}
