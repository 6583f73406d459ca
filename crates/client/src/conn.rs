//! One connection: a socket, TLS around it where asked for, and at most one request in flight.

use crate::acks::Delayed;
use crate::http::Http;
use crate::job::Job;
use rustls::ClientConnection;
use std::io::{self, Read, Write};
use tailbound_clock::Time;
use tailbound_os::Stamped;
use tailbound_os::socket::Socket;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Connecting,
    Handshake,
    Idle,
    Busy,
}

pub(crate) struct Conn {
    pub socket: Socket,
    pub state: State,
    /// Which of the target's addresses it goes to.
    pub address: usize,
    /// How many addresses have been tried for it.
    pub tried: usize,
    /// Requests it has carried to their end.
    pub served: u32,
    /// When its timer entry is set for; `Time::MAX`: it has none.
    pub armed: Time,
    pub http: Http,
    pub acks: Option<Delayed>,
    pub tls: Option<Box<ClientConnection>>,
    pub job: Option<Box<Job>>,
    pub connect_start: Time,
    pub connected: Time,
    pub tls_done: Time,
}

impl Conn {
    pub fn new(socket: Socket, http: Http, address: usize, connect_start: Time) -> Conn {
        Conn {
            socket,
            state: State::Connecting,
            address,
            tried: 0,
            served: 0,
            armed: Time::MAX,
            http,
            acks: None,
            tls: None,
            job: None,
            connect_start,
            connected: connect_start,
            tls_done: connect_start,
        }
    }

    /// Receives what has come for the request in flight.
    #[inline]
    pub fn receive(&mut self, buf: &mut [u8]) -> io::Result<Option<Stamped>> {
        match &mut self.acks {
            Some(acks) => acks.receive(&self.socket, buf),
            None => self.socket.receive(buf),
        }
    }

    /// Leaves nothing in the socket of what has been received.
    pub fn take_out(&mut self) {
        if let Some(acks) = &mut self.acks {
            acks.end(&self.socket);
        }
    }

    /// Writes what is left of the request (or of the handshake, or is owed to the server); whether all of the request is gone.
    pub fn flush(&mut self) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            if let Some(output) = self.http.output() {
                tls.writer().write_all(output)?;
                output.clear();
            }
            let mut out = Out(&self.socket);
            while tls.wants_write() {
                match tls.write_tls(&mut out) {
                    Ok(_) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(e) => return Err(e),
                }
            }
            return Ok(self.http.all_handed_over());
        }
        // A long prompt goes out in dozens of pieces: what is left of it stays where it is.
        if let Some(job) = &mut self.job {
            while job.rest_from < job.rest.len() {
                match self.socket.send(&job.rest[job.rest_from..], &[])? {
                    Some(n) => job.rest_from += n,
                    None => return Ok(false),
                }
            }
            job.forget_rest();
        }
        while let Some(output) = self.http.output() {
            match self.socket.send(output, &[])? {
                Some(n) => drop(output.drain(..n)),
                None => return Ok(false),
            }
        }
        Ok(self.http.all_handed_over())
    }

    /// Hands a request to the kernel (through TLS where there is any); what it doesn't take now waits for [`Conn::flush`].
    /// Returns whether all of it is gone.
    pub fn write(&mut self, head: &[u8], body: &[u8]) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(head)?;
            tls.writer().write_all(body)?;
            return self.flush();
        }
        let sent = self.socket.send(head, body)?.unwrap_or(0);
        if sent == head.len() + body.len() {
            return Ok(self.http.all_handed_over());
        }
        if let Some(job) = &mut self.job {
            job.rest = [&head[sent.min(head.len())..], &body[sent.saturating_sub(head.len())..]].concat();
        }
        self.flush()
    }

    /// Gives received bytes to TLS; each piece of plain text comes out through `on`, which says when it has had enough.
    pub fn decrypt(
        tls: &mut ClientConnection,
        mut bytes: &[u8],
        plain: &mut [u8],
        mut on: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            tls.process_new_packets().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            loop {
                match tls.reader().read(plain) {
                    Ok(0) => return Ok(()), // the peer said goodbye
                    Ok(n) => {
                        if on(&plain[..n]) {
                            return Ok(());
                        }
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(())
    }
}

/// A socket as `rustls` wants to write to it.
struct Out<'a>(&'a Socket);

impl Write for Out<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.send(buf, &[])?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
