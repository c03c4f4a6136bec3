//! Scripts, environments and secrets: who may plant them, and who sees them.
