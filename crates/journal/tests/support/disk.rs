//! A disk in memory that forgets what was not synced.
