//! Listening sockets with a backlog that survives ten thousand clients connecting at once.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

/// A non-blocking listener on `addr` (port 0: any free one) whose queue of unaccepted connections holds `backlog`
/// (the kernel caps it at `net.core.somaxconn`). The standard library's own 128 makes a burst of clients wait a second
/// for their lost SYN to be sent again.
pub fn listen(addr: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(addr)?;
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    // SAFETY: the descriptor is open for the whole call; a second `listen` only changes the backlog.
    if unsafe { libc::listen(listener.as_raw_fd(), backlog) } != 0 {
        return Err(io::Error::last_os_error());
    }
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn holds_a_burst_that_nobody_accepts() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)), 1024).unwrap();
        let addr = listener.local_addr().unwrap();
        let clients: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(addr).unwrap()).collect();
        let accepted = std::iter::from_fn(|| listener.accept().ok()).count();
        assert_eq!(accepted, clients.len());
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
