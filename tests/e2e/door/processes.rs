//! Processes of root on a node, attacked by the users whose work they do.
