//! As much of ZeroMQ's wire protocol (ZMTP 3.0, mechanism NULL) as publishing takes.

use std::io::{self, Read, Write};

/// Longest frame taken from a peer: subscriptions and numbers are short.
const LONGEST: u64 = 1 << 16;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Greets, and says what kind of socket this is; a peer that isn't ZMTP 3 is refused.
pub(crate) fn greet(stream: &mut (impl Read + Write), socket_type: &str) -> io::Result<()> {
    let mut greeting = [0u8; 64];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting)?;
    let mut theirs = [0u8; 64];
    stream.read_exact(&mut theirs)?;
    if theirs[0] != 0xff || theirs[9] & 1 == 0 || theirs[10] < 3 || theirs[12..17] != *b"NULL\0" {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the peer doesn't speak ZMTP 3 without security"));
    }
    let mut ready = b"\x05READY\x0bSocket-Type".to_vec();
    ready.extend((socket_type.len() as u32).to_be_bytes());
    ready.extend_from_slice(socket_type.as_bytes());
    let mut frame = vec![COMMAND, ready.len() as u8];
    frame.extend(ready);
    stream.write_all(&frame)?;
    match read_frame(stream)? {
        (flags, body) if flags & COMMAND != 0 && body.starts_with(b"\x05READY") => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the peer isn't ready")),
    }
}

/// A message of several frames, as it goes over the wire.
pub(crate) fn message(frames: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::with_capacity(frames.iter().map(|f| f.len() + 9).sum());
    for (i, frame) in frames.iter().enumerate() {
        let more = if i + 1 < frames.len() { MORE } else { 0 };
        match u8::try_from(frame.len()) {
            Ok(n) => out.extend([more, n]),
            Err(_) => {
                out.push(more | LONG);
                out.extend((frame.len() as u64).to_be_bytes());
            }
        }
        out.extend_from_slice(frame);
    }
    out
}

/// What a peer sends once it is connected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It wants messages whose first frame begins so.
    Subscribe(Vec<u8>),
    /// It no longer does.
    Cancel(Vec<u8>),
    /// A message.
    Message(Vec<Vec<u8>>),
    /// A command of no consequence here.
    Other,
}

/// Waits for the next thing a peer sends.
pub(crate) fn read(stream: &mut impl Read) -> io::Result<Told> {
    let mut frames = Vec::new();
    loop {
        let (flags, body) = read_frame(stream)?;
        if flags & COMMAND != 0 {
            let topic = |name: &[u8]| body.strip_prefix(name).map(<[u8]>::to_vec);
            return Ok(match (topic(b"\x09SUBSCRIBE"), topic(b"\x06CANCEL")) {
                (Some(topic), _) => Told::Subscribe(topic),
                (_, Some(topic)) => Told::Cancel(topic),
                _ => Told::Other,
            });
        }
        frames.push(body);
        if frames.len() > 16 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message of more than 16 frames"));
        }
        if flags & MORE == 0 {
            break;
        }
    }
    // Before 3.1 subscriptions are messages.
    Ok(match frames.first().and_then(|f| f.split_first()) {
        Some((1, topic)) if frames.len() == 1 => Told::Subscribe(topic.to_vec()),
        Some((0, topic)) if frames.len() == 1 && topic.len() != 7 => Told::Cancel(topic.to_vec()),
        _ => Told::Message(frames),
    })
}

fn read_frame(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0u8; 2];
    stream.read_exact(&mut head)?;
    let length = if head[0] & LONG == 0 {
        u64::from(head[1])
    } else {
        let mut rest = [0u8; 8];
        rest[0] = head[1];
        stream.read_exact(&mut rest[1..])?;
        u64::from_be_bytes(rest)
    };
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame of more than 64 KiB"));
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body)?;
    Ok((head[0], body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let long = vec![7u8; 300];
        let wire = message(&[b"topic", b"", &long]);
        assert_eq!(wire[..2], [MORE, 5]);
        let told = read(&mut &wire[..]).expect("a whole message");
        assert_eq!(told, Told::Message(vec![b"topic".to_vec(), Vec::new(), long]));
        assert!(read(&mut &wire[..wire.len() - 1]).is_err());
    }

    #[test]
    fn subscriptions_come_as_messages_or_as_commands() {
        let told = |bytes: &[u8]| read(&mut &bytes[..]).expect("a whole message");
        assert_eq!(told(&[0, 4, 1, b'k', b'v', b'@']), Told::Subscribe(b"kv@".to_vec()));
        assert_eq!(told(b"\x04\x0d\x09SUBSCRIBEkv@"), Told::Subscribe(b"kv@".to_vec()));
        assert_eq!(told(b"\x04\x0a\x06CANCELkv@"), Told::Cancel(b"kv@".to_vec()));
        assert_eq!(told(b"\x04\x05\x04PING"), Told::Other);
        assert!(read(&mut &[2u8, 255, 255, 255, 255, 255, 255, 255, 255][..]).is_err(), "no memory for a liar");
    }
}
