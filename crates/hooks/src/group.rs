//! The processes of one hook, all of them.
use std::time::Duration;

/// What is left after SIGTERM gets this long.
const GRACE: Duration = Duration::from_millis(10);

/// A session that was begun by the worker; kills it when dropped.
pub struct Group(pub i32);

impl Group {
    /// Ends it politely, then not.
    pub async fn end(&self) {
        self.signal(libc::SIGTERM);
        tokio::time::sleep(GRACE).await;
        self.signal(libc::SIGKILL);
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a plain system call. The worker leads the group and is not reaped before this value goes.
        unsafe { libc::kill(-self.0, signal) };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
    }
}
