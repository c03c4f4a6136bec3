//! The text of each script as it last loaded: a newer one that does not is told of in the log, and not used.
use std::collections::BTreeMap;
use std::time::SystemTime;

use tokio::sync::Mutex;

#[derive(Default)]
pub struct Scripts {
    known: Mutex<BTreeMap<String, Known>>,
}

struct Known {
    changed: Option<SystemTime>,
    text: String,
}

impl Scripts {
    /// Looks at the file again if it has changed.
    pub async fn text(&self, path: &str) -> Result<String, String> {
        let file = tokio::fs::metadata(path).await.and_then(|file| file.modified());
        let changed = file.as_ref().ok().copied();
        let mut known = self.known.lock().await;
        if let Some(same) = known.get(path).filter(|known| known.changed == changed) {
            return Ok(same.text.clone());
        }
        let text = match hooks::check_in_time(path, &hooks::SUBMIT_FUNCTIONS).await {
            Ok(()) => tokio::fs::read_to_string(path).await.map_err(|error| format!("{path}: {error}")),
            Err(why) => Err(why),
        };
        match (text, known.get_mut(path)) {
            (Ok(text), _) => {
                known.insert(path.to_owned(), Known { changed, text: text.clone() });
                Ok(text)
            }
            (Err(why), Some(before)) => {
                tracing::error!(why, "job_submit.lua: the script as it was before goes on");
                before.changed = changed;
                Ok(before.text.clone())
            }
            (Err(why), None) => Err(why),
        }
    }
}
