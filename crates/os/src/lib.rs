//! The only clock, absolute sleep, kernel receive stamps, limits, pinning; the home of `unsafe`.

pub mod epoll;
pub mod listen;
