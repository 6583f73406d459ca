//! Where pages of metrics are, and one look at one.

use crate::bench::serve::args::TargetArgs;
use crate::failure::{Failure, Outcome};
use crate::http::Server;
use std::fmt;
use tailbound_client::{ClientError, Limits, Target, Trust, fetch_within};
use tailbound_clock::Dur;
use tailbound_record::server::Reading;
use tailbound_wire::metrics;

/// Where every known server has its metrics.
const USUAL: &str = "/metrics";
/// vLLM's page has 100 kB, a large machine's 1 MB.
const LONGEST: usize = 8 << 20;

/// A page of metrics.
pub struct Source {
    target: Target,
    path: String,
    /// Whether it has ever had anything to say.
    pub known: bool,
}

/// The server's own page, and those of `--server-metrics`.
pub fn sources(args: &TargetArgs, server: &Server) -> Outcome<Vec<Source>> {
    if args.no_server_metrics {
        return Ok(Vec::new());
    }
    let own = Source { target: server.target.clone(), path: USUAL.to_owned(), known: false };
    let mut all = vec![own];
    for url in &args.server_metrics {
        let source = Source::named(url, &server.target.trust)?;
        if all.iter().all(|known| known.to_string() != source.to_string()) {
            all.push(source);
        }
    }
    Ok(all)
}

/// Whether the flags name addresses.
pub fn check(args: &TargetArgs) -> Outcome<()> {
    args.server_metrics.iter().try_for_each(|url| Source::named(url, &Trust::System).map(drop))
}

impl Source {
    /// An address, to which `/metrics` is added where it has no path. Nothing of the target's headers goes there.
    fn named(url: &str, trust: &Trust) -> Outcome<Source> {
        let after = url.find("://").map_or(0, |at| at + 3);
        let at = url[after..].find('/').map_or(url.len(), |at| after + at);
        let (base, path) = url.split_at(at);
        let target = Target::parse(base).map_err(|e| Failure::usage(format!("--server-metrics: failed to {e}")))?;
        if path.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control()) {
            return Err(Failure::usage(format!("--server-metrics {url:?}: it holds a space or control character")));
        }
        let path = if matches!(path, "" | "/") { USUAL } else { path }.to_owned();
        Ok(Source { target: Target { trust: trust.clone(), ..target }, path, known: false })
    }

    /// Reads it, in the time there is.
    pub fn read(&self, time: Dur) -> Result<Reading, String> {
        let reply = fetch_within(&self.target, &self.path, None, Limits { time, bytes: LONGEST });
        let reply = reply.map_err(|e| match e {
            // Where it is is said already.
            ClientError::Exchange { phase, problem, .. } => format!("failed to {phase} it: {problem}"),
            e => format!("failed to {e}"),
        })?;
        if reply.status != 200 {
            return Err(format!("it answered with status {}", reply.status));
        }
        metrics::reading(&reply.body).map_err(|e| e.to_string())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.target, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_a_path() {
        let named = |url: &str| Source::named(url, &Trust::System).map(|s| s.to_string());
        for (url, is) in [
            ("http://gpu:9400/metrics", "http://gpu:9400/metrics"),
            ("gpu:9400", "http://gpu:9400/metrics"),
            ("https://h/", "https://h/metrics"),
            ("http://[::1]:1/a/b?c=d", "http://[::1]:1/a/b?c=d"),
        ] {
            assert_eq!(named(url).ok().as_deref(), Some(is));
        }
        for url in ["ftp://x", "http://", "http://x:99999/metrics", "http://x/a b", "http://me:sk-1@x/metrics"] {
            assert!(named(url).is_err(), "{url}");
        }
    }
}
