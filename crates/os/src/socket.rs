//! Non-blocking TCP sockets with kernel receive stamps.

use crate::stamps::Stamped;
use std::io::{self, IoSlice, Write};
use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use tailbound_clock::Dur;

/// A TCP socket of ours: non-blocking, close-on-exec, without Nagle's delay, with receive stamps where the kernel gives them.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Starts connecting to `addr`. Ready to write means connected or failed: ask [`Socket::connect_error`].
    ///
    /// # Errors
    /// What the operating system says: no descriptors left (`EMFILE`), no route, no port, refused.
    pub fn connect(addr: SocketAddr) -> io::Result<Socket> {
        let family = if addr.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        // SAFETY: no pointers; the result is checked.
        let fd =
            check(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: `fd` is a descriptor just opened and owned by nobody else.
        let socket = Socket { fd: unsafe { OwnedFd::from_raw_fd(fd) } };
        set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        let _ = stamp_receives(&socket.fd); // without stamps each read has its own time; rows say so
        match socket.start(addr) {
            Ok(()) => Ok(socket),
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
            Err(e) => Err(e),
        }
    }

    fn start(&self, addr: SocketAddr) -> io::Result<()> {
        let fd = self.fd.as_raw_fd();
        match addr {
            SocketAddr::V4(a) => {
                // SAFETY: all-zero is a valid sockaddr_in.
                let mut sa: libc::sockaddr_in = unsafe { zeroed() };
                sa.sin_family = libc::AF_INET as libc::sa_family_t;
                sa.sin_port = a.port().to_be();
                sa.sin_addr.s_addr = u32::from_ne_bytes(a.ip().octets());
                // SAFETY: `sa` is a whole sockaddr_in and its true size is given.
                check(unsafe { libc::connect(fd, (&raw const sa).cast(), size_of::<libc::sockaddr_in>() as u32) })?;
            }
            SocketAddr::V6(a) => {
                // SAFETY: all-zero is a valid sockaddr_in6.
                let mut sa: libc::sockaddr_in6 = unsafe { zeroed() };
                sa.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                sa.sin6_port = a.port().to_be();
                sa.sin6_addr.s6_addr = a.ip().octets();
                sa.sin6_flowinfo = a.flowinfo();
                sa.sin6_scope_id = a.scope_id();
                // SAFETY: `sa` is a whole sockaddr_in6 and its true size is given.
                check(unsafe { libc::connect(fd, (&raw const sa).cast(), size_of::<libc::sockaddr_in6>() as u32) })?;
            }
        }
        Ok(())
    }

    /// The outcome of a connect once the socket is writable; clears the socket's pending error.
    ///
    /// # Errors
    /// Why it failed: refused, unreachable, timed out.
    pub fn connect_error(&self) -> io::Result<()> {
        let mut code: libc::c_int = 0;
        let mut len = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: `code` and `len` are valid for writes and `len` is the size of `code`.
        check(unsafe {
            libc::getsockopt(self.fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut code).cast(), &mut len)
        })?;
        if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
    }

    /// Whether the connection stands. On one machine it does as soon as [`Socket::connect`] returns.
    pub fn is_connected(&self) -> bool {
        // SAFETY: all-zero is a valid sockaddr_storage.
        let mut peer: libc::sockaddr_storage = unsafe { zeroed() };
        let mut len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: `peer` and `len` are valid for writes and `len` is the size of `peer`.
        unsafe { libc::getpeername(self.fd.as_raw_fd(), (&raw mut peer).cast(), &mut len) == 0 }
    }

    /// Receives what is there, with the kernel's stamp of its last byte. `Ok(None)`: nothing there now.
    ///
    /// # Errors
    /// What the operating system says (reset, timed out …).
    pub fn receive(&self, buf: &mut [u8]) -> io::Result<Option<Stamped>> {
        receive(self.fd.as_raw_fd(), buf, 0)
    }

    /// From now on [`Socket::peek`] goes on behind what it gave last, where the kernel can do that for TCP (Linux 6.9; IPv6 6.10).
    ///
    /// Returns whether it can. Until then `peek` would give the same bytes again.
    pub fn peek_onwards(&self) -> bool {
        set_option(self.fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEEK_OFF, 0).is_ok()
    }

    /// Like [`Socket::receive`], but the bytes stay in the socket until [`Socket::discard`], and so does their acknowledgement: the
    /// kernel sends that when more than a full segment is owed, or when its timer runs out, instead of at a read.
    ///
    /// # Errors
    /// What the operating system says (reset, timed out …).
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<Option<Stamped>> {
        receive(self.fd.as_raw_fd(), buf, libc::MSG_PEEK)
    }

    /// Takes `len` bytes that were peeked at out of the socket, without copying them (`MSG_TRUNC`, see tcp(7)).
    pub fn discard(&self, len: usize) {
        let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
        // SAFETY: with MSG_TRUNC a TCP socket writes nothing, so no memory is needed.
        unsafe { libc::recv(self.fd.as_raw_fd(), std::ptr::null_mut(), len, flags) };
    }

    /// Sends as much of `head` and then `body` as the kernel takes, in one call. `Ok(None)`: no room now.
    ///
    /// # Errors
    /// What the operating system says (reset, broken pipe …); never a signal.
    pub fn send(&self, head: &[u8], body: &[u8]) -> io::Result<Option<usize>> {
        let parts = [IoSlice::new(head), IoSlice::new(body)];
        // SAFETY: all-zero is a valid msghdr.
        let mut msg: libc::msghdr = unsafe { zeroed() };
        msg.msg_iov = parts.as_ptr().cast_mut().cast(); // IoSlice is ABI-compatible with iovec
        msg.msg_iovlen = parts.len();
        // SAFETY: `msg` points to two iovecs that live across the call, and the kernel only reads them.
        let n = unsafe { libc::sendmsg(self.fd.as_raw_fd(), &msg, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
        would_block(n)
    }

    /// Lets acknowledgements wait, as for an interactive peer: the kernel then sends one for every second small segment, or 40 ms
    /// after the first, instead of one at every read. Sending one costs more than reading what it is for.
    ///
    /// Only for a peer that does not wait for them before it sends more (see [`Socket::segments_sent`]): one that collects
    /// small writes while an earlier one is unacknowledged (Nagle's algorithm) would be slowed down.
    pub fn delay_acks(&self) {
        let _ = set_option(self.fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0);
    }

    /// Segments this socket has sent, bare acknowledgements included; `None` where the kernel doesn't say (before Linux 4.2).
    pub fn segments_sent(&self) -> Option<u32> {
        // struct tcp_info up to and with tcpi_segs_out: eight bytes, twenty-four u32, four u64, and the field itself.
        const AT: usize = 8 + 24 * 4 + 4 * 8;
        let mut info = [0u8; AT + 4];
        let mut len = info.len() as libc::socklen_t;
        // SAFETY: `info` and `len` are valid for writes and `len` is the size of `info`; the kernel writes no more than that.
        let rc = unsafe {
            libc::getsockopt(self.fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut len)
        };
        let field = info[AT..].try_into().ok()?;
        (rc == 0 && len as usize >= info.len()).then(|| u32::from_ne_bytes(field))
    }

    /// Closes the connection with a reset instead of leaving it in TIME_WAIT: for requests given up in the middle, so that a
    /// cancelled run does not eat the machine's ports.
    pub fn abort(self) {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: `linger` is valid for reads of the size given. Failing leaves an ordinary close.
        unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const linger).cast(),
                size_of::<libc::linger>() as u32,
            )
        };
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Asks the kernel to stamp what this socket receives.
///
/// # Errors
/// Where the platform does not offer it.
pub fn stamp_receives(fd: &impl AsFd) -> io::Result<()> {
    set_option(fd.as_fd().as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Keeps the kernel's stamping switched on.
///
/// The kernel begins to stamp packets only while some socket wants stamps, and switches it on a moment *after* it was asked
/// to: without this the first stamps of a run are missing or wrong. Hold one from the start.
#[derive(Debug)]
pub struct StampsOn {
    _receiver: Socket,
}

impl StampsOn {
    /// Switches stamping on and waits, half a second at most, until bytes sent to ourselves come back with a stamp.
    /// `None`: the kernel gives no stamps here.
    ///
    /// This must be tried on TCP: for a datagram without a stamp the kernel makes one up when it is read.
    pub fn hold() -> Option<StampsOn> {
        let listener = TcpListener::bind("127.0.0.1:0").ok()?;
        let receiver = Socket::connect(listener.local_addr().ok()?).ok()?;
        let (mut sender, _) = listener.accept().ok()?;
        let start = crate::clock::now();
        let mut buf = [0u8; 8];
        while crate::clock::now().since(start) < Dur::from_ms(500) {
            sender.write_all(b"stamp").ok()?;
            crate::poll::wait_readable(&receiver, Dur::from_ms(10));
            if let Ok(Some(Stamped { wall_ns: Some(_), .. })) = receiver.receive(&mut buf) {
                return Some(StampsOn { _receiver: receiver });
            }
            crate::sleep::until(crate::clock::now() + Dur::from_us(200));
        }
        None
    }
}

/// Turns a stream accepted or connected elsewhere into a stamped non-blocking one.
///
/// # Errors
/// What the operating system says.
pub fn from_std(stream: TcpStream) -> io::Result<Socket> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let fd = OwnedFd::from(stream);
    let _ = stamp_receives(&fd);
    Ok(Socket { fd })
}

/// Sets how many connections may wait to be accepted (the kernel caps it at `net.core.somaxconn`); std's own is 128, which ten
/// thousand simultaneous connects overrun, and a lost SYN costs a second.
///
/// # Errors
/// What the operating system says.
pub fn widen_backlog(listener: &TcpListener, waiting: u16) -> io::Result<()> {
    // SAFETY: no pointers; listening again on a listening socket changes its backlog.
    check(unsafe { libc::listen(listener.as_raw_fd(), i32::from(waiting)) }).map(drop)
}

/// Room for one `SCM_TIMESTAMPNS` message, aligned as a cmsghdr must be.
#[repr(C, align(8))]
struct Control([u8; 64]);

fn receive(fd: RawFd, buf: &mut [u8], flags: libc::c_int) -> io::Result<Option<Stamped>> {
    let mut part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let mut control = Control([0; 64]);
    // SAFETY: all-zero is a valid msghdr.
    let mut msg: libc::msghdr = unsafe { zeroed() };
    msg.msg_iov = &mut part;
    msg.msg_iovlen = 1;
    msg.msg_control = (&raw mut control).cast();
    msg.msg_controllen = size_of::<Control>();
    // SAFETY: `msg` points to a buffer and a control area that are valid for writes of the sizes given, across the call.
    let n = unsafe { libc::recvmsg(fd, &mut msg, libc::MSG_DONTWAIT | flags) };
    match would_block(n)? {
        None => Ok(None),
        Some(len) => Ok(Some(Stamped { len, wall_ns: stamp_of(&msg) })),
    }
}

fn stamp_of(msg: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel filled msg_control and msg_controllen; the CMSG macros walk within those bounds, and the control
    // area outlives `msg`. A SCM_TIMESTAMPNS message carries one timespec, read unaligned.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(msg);
        while !at.is_null() {
            if (*at).cmsg_level == libc::SOL_SOCKET && (*at).cmsg_type == libc::SCM_TIMESTAMPNS {
                let ts = libc::CMSG_DATA(at).cast::<libc::timespec>().read_unaligned();
                let ns = ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64;
                return (ns != 0).then_some(ns);
            }
            at = libc::CMSG_NXTHDR(msg, at);
        }
    }
    None
}

fn set_option(fd: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: `value` is valid for reads of the size given.
    let rc = unsafe {
        libc::setsockopt(fd, level, name, (&raw const value).cast(), size_of::<libc::c_int>() as libc::socklen_t)
    };
    check(rc).map(drop)
}

pub(crate) fn check(rc: libc::c_int) -> io::Result<libc::c_int> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}

fn would_block(n: isize) -> io::Result<Option<usize>> {
    if n >= 0 {
        return Ok(Some(n as usize));
    }
    let e = io::Error::last_os_error();
    match e.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Ok(None),
        _ => Err(e),
    }
}
