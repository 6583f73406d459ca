//! A real HTTP server around `engine`, for tests, demos and gateways without accelerators.
