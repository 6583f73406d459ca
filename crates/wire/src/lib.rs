//! Bytes to meaning: request bodies and stream decoding for each API; the SSE parser. No I/O.
