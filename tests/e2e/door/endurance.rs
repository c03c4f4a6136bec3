//! A full disk, no descriptors, a socket taken over, and what the audit log says of it.
