use crate::ClientError;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Where requests go, and what goes with each of them.
#[derive(Clone, Debug)]
pub struct Target {
    /// `https`.
    pub tls: bool,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path in front of every endpoint; empty or `/…` without a slash at its end.
    pub prefix: String,
    /// Whom to believe, where TLS is used.
    pub trust: Trust,
    /// Headers sent with every request (authorization among them).
    pub headers: Vec<Header>,
    /// Speak HTTP/2 (prior knowledge without TLS, ALPN with it).
    pub http2: bool,
}

/// Which certificates are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The system's roots.
    #[default]
    System,
    /// Those in a PEM file.
    File(PathBuf),
    /// Any.
    Anything,
}

/// One header. Its value is never printed: it may be a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    value: String,
}

impl Header {
    /// A header for every request.
    ///
    /// # Errors
    /// A name or value that HTTP does not allow, or one that this client sets itself.
    pub fn new(name: &str, value: &str) -> Result<Header, ClientError> {
        let wrong = |problem| ClientError::Header { name: name.to_owned(), problem };
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(token) {
            return Err(wrong("a header name is letters, digits and dashes"));
        }
        if value.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return Err(wrong("its value holds a line break or a zero byte"));
        }
        const OURS: [&str; 6] =
            ["host", "content-length", "transfer-encoding", "connection", "accept-encoding", "upgrade"];
        if OURS.iter().any(|ours| ours.eq_ignore_ascii_case(name)) {
            return Err(wrong("this client sets it itself"));
        }
        Ok(Header { name: name.to_ascii_lowercase(), value: value.trim().to_owned() })
    }

    pub(crate) fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: (hidden)", self.name)
    }
}

impl Target {
    /// From a base URL: `http://host[:port][/path]` or `https://…`; the scheme may be left out (`http`).
    /// Proxies named in the environment are not used: what is measured is the path to this address.
    ///
    /// # Errors
    /// What is wrong with the URL.
    pub fn parse(url: &str) -> Result<Target, ClientError> {
        let wrong = |problem: &str| ClientError::Url { url: url.to_owned(), problem: problem.to_owned() };
        let (tls, rest) = match url.trim().split_once("://") {
            None => (false, url.trim()),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, _)) => return Err(wrong(&format!("the scheme {scheme} is neither http nor https"))),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if path.contains(['?', '#']) || authority.contains(['?', '#']) {
            return Err(wrong("a base URL has no query or fragment"));
        }
        if authority.contains('@') {
            return Err(ClientError::Url {
                url: "(hidden)".into(),
                problem: "a user name or key in the URL is not accepted; put it in a header".into(),
            });
        }
        if rest.bytes().any(|b| b.is_ascii_whitespace() || b.is_ascii_control()) {
            return Err(wrong("it holds a space or control character"));
        }
        let (host, port) = split_port(authority).ok_or_else(|| wrong("the port is not a number up to 65535"))?;
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let port = port.unwrap_or(if tls { 443 } else { 80 });
        let prefix = path.trim_end_matches('/').to_owned();
        Ok(Target { tls, host: host.to_owned(), port, prefix, trust: Trust::System, headers: Vec::new(), http2: false })
    }

    /// Whether what is asked for can be sent.
    ///
    /// # Errors
    /// A header that HTTP/2 does not allow (RFC 9113, 8.2.2), where that is to be spoken.
    pub fn check(&self) -> Result<(), ClientError> {
        const NOT_THERE: [&str; 3] = ["keep-alive", "proxy-connection", "te"];
        match self.headers.iter().find(|h| self.http2 && NOT_THERE.contains(&h.name.as_str())) {
            Some(Header { name, .. }) => {
                Err(ClientError::Header { name: name.clone(), problem: "HTTP/2 does not allow it" })
            }
            None => Ok(()),
        }
    }

    /// The addresses of the host, in the resolver's order: IPv6 and IPv4 alike.
    ///
    /// # Errors
    /// The name has none.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, ClientError> {
        let wrong = |problem: String| ClientError::Resolve { host: self.host.clone(), problem };
        let found = (self.host.as_str(), self.port).to_socket_addrs().map_err(|e| wrong(e.to_string()))?;
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(wrong("the name exists, but has no address".into()));
        }
        Ok(addresses)
    }

    /// The value of the `host` header: without the port where it is the scheme's own.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.tls { "https" } else { "http" }, self.authority(), self.prefix)
    }
}

/// `None`: a port that is no port.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        return match after.strip_prefix(':') {
            None if after.is_empty() => Some((host, None)),
            None => None,
            Some(port) => Some((host, Some(port.parse().ok()?))),
        };
    }
    match authority.rsplit_once(':') {
        None => Some((authority, None)),
        Some((host, _)) if host.contains(':') => Some((authority, None)), // a bare IPv6 address
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_as_people_paste_them() {
        let cases = [
            ("http://localhost:8000", false, "localhost", 8000, ""),
            ("localhost:8000", false, "localhost", 8000, ""),
            ("HTTPS://api.example.com/", true, "api.example.com", 443, ""),
            ("https://gw.example.com/openai/", true, "gw.example.com", 443, "/openai"),
            ("http://[::1]:9000/x", false, "::1", 9000, "/x"),
            ("127.0.0.1", false, "127.0.0.1", 80, ""),
        ];
        for (url, tls, host, port, prefix) in cases {
            let t = Target::parse(url).unwrap();
            assert_eq!((t.tls, t.host.as_str(), t.port, t.prefix.as_str()), (tls, host, port, prefix), "{url}");
        }
        assert_eq!(Target::parse("http://[::1]:9000").unwrap().authority(), "[::1]:9000");
        assert_eq!(Target::parse("https://h").unwrap().to_string(), "https://h");
    }

    #[test]
    fn bad_urls_say_what_is_wrong() {
        for (url, says) in [
            ("ftp://x", "neither http nor https"),
            ("http://", "no host"),
            ("http://x:99999", "port"),
            ("http://x/?a=1", "query"),
            ("http://a b", "space"),
            ("http://[::1", "port"),
        ] {
            let said = Target::parse(url).unwrap_err().to_string();
            assert!(said.contains(says), "{url}: {said}");
        }
    }

    #[test]
    fn keys_are_never_printed() {
        let said = Target::parse("http://user:sk-secret@host").unwrap_err().to_string();
        assert!(!said.contains("sk-secret"), "{said}");
        let header = Header::new("Authorization", "Bearer sk-secret").unwrap();
        assert!(!format!("{header:?}").contains("sk-secret"));
        let said = Header::new("x-key", "sk-secret\nx").unwrap_err().to_string();
        assert!(!said.contains("sk-secret"), "{said}");
        assert!(Header::new("Content-Length", "3").is_err());
        assert!(Header::new("a b", "3").is_err());
    }
}
