//! What jobs and helper processes are kept from doing.
