//! What a caller may cost everybody else: answers, watchers, mails, calls a minute.
