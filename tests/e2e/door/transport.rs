//! Bytes before anybody judged them: depth, size, idle connections, handshakes.
