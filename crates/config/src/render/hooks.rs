//! The section `[hooks]`, where there is anything in it.
use model::Config;
use model::time::Span;

use super::{Text, seconds};
use crate::hooks::FLAGS;

pub(super) fn render(text: &mut Text, config: &Config) {
    let mut hooks = config.hooks.clone();
    // These stand at the top of the file.
    (hooks.srun_prolog, hooks.srun_epilog) = (String::new(), String::new());
    if hooks == Default::default() {
        return;
    }
    text.header("[hooks]");
    text.strings("prolog", &hooks.prolog);
    text.strings("epilog", &hooks.epilog);
    text.strings("controller_prolog", &hooks.controller_prolog);
    text.strings("controller_epilog", &hooks.controller_epilog);
    text.string("task_prolog", &hooks.task_prolog);
    text.string("task_epilog", &hooks.task_epilog);
    text.strings("job_submit", &hooks.job_submit);
    text.value("job_submit_timeout", seconds(hooks.job_submit_timeout.unwrap_or(Span(0))));
    let flags: Vec<String> =
        FLAGS.iter().filter(|(_, flag)| *flag(&mut hooks.flags)).map(|(name, _)| name.to_string()).collect();
    text.strings("flags", &flags);
    text.value("prolog_timeout", seconds(hooks.prolog_timeout.unwrap_or(Span(0))));
    text.value("epilog_timeout", seconds(hooks.epilog_timeout.unwrap_or(Span(0))));
}
