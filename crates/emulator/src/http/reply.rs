//! Replies as bytes.

use std::io::Write;

/// What every reply's head shares.
#[derive(Clone, Copy)]
pub(crate) struct Common<'a> {
    /// The `date` header's value.
    pub date: &'a str,
    /// Echoed as `x-request-id` when given.
    pub request_id: Option<&'a str>,
    pub keep_alive: bool,
    /// HTTP/1.0, whose default is to close.
    pub old: bool,
}

/// What a reply's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Json,
    /// The Prometheus text format.
    Metrics,
    None,
}

/// Appends a whole reply. `with_body` is false for HEAD.
pub(crate) fn whole(
    out: &mut Vec<u8>,
    status: u16,
    content: Content,
    body: &[u8],
    common: Common<'_>,
    with_body: bool,
) {
    start(out, status, common);
    let kind = match content {
        Content::Json => "content-type: application/json\r\n",
        Content::Metrics => "content-type: text/plain; version=0.0.4; charset=utf-8\r\n",
        Content::None => "",
    };
    put(out, format_args!("content-length: {}\r\n{kind}", body.len()));
    if status == 405 {
        out.extend_from_slice(b"allow: GET, POST\r\n");
    }
    finish_head(out, common);
    if with_body {
        out.extend_from_slice(body);
    }
}

/// Appends the head of a streamed reply: chunked for HTTP/1.1, else until the connection closes.
pub(crate) fn stream_head(out: &mut Vec<u8>, common: Common<'_>) {
    start(out, 200, common);
    out.extend_from_slice(b"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n");
    if !common.old {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    finish_head(out, common);
}

/// The chunk that ends a chunked body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends the size line of a chunk of `length` bytes.
pub(crate) fn chunk_size(out: &mut Vec<u8>, length: usize) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digits = (usize::BITS - (length | 1).leading_zeros()).div_ceil(4);
    for i in (0..digits).rev() {
        out.push(HEX[(length >> (4 * i)) & 15]);
    }
    out.extend_from_slice(b"\r\n");
}

fn start(out: &mut Vec<u8>, status: u16, common: Common<'_>) {
    put(out, format_args!("HTTP/1.1 {status} {}\r\ndate: {}\r\nserver: tailbound\r\n", phrase(status), common.date));
}

fn finish_head(out: &mut Vec<u8>, common: Common<'_>) {
    if let Some(id) = common.request_id {
        put(out, format_args!("x-request-id: {id}\r\n"));
    }
    if !common.keep_alive {
        out.extend_from_slice(b"connection: close\r\n");
    } else if common.old {
        out.extend_from_slice(b"connection: keep-alive\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Formats into a buffer, which cannot fail.
pub(crate) fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok(), "writing to memory");
}

/// A status code's phrase (RFC 9110).
pub(crate) fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}

/// Seconds since 1970 as HTTP writes a date: `Mon, 30 Nov 2026 14:14:54 GMT`.
pub(crate) fn date(unix_seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // The proleptic Gregorian calendar in years that start in March, so that the leap day comes last: 719,468 days lie
    // between 1 March of year 0 and 1970.
    let since_march = days + 719_468;
    let era = since_march / 146_097;
    let day_of_era = since_march % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let january_first = (month + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month >= 10);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[january_first as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N '+%a, %d %b %Y %T GMT'`.
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (1_796_048_094, "Mon, 30 Nov 2026 14:14:54 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn chunk_sizes_are_hexadecimal_without_leading_zeros() {
        for n in [0usize, 1, 15, 16, 255, 256, 4095, 4096, 1 << 20] {
            let mut out = Vec::new();
            chunk_size(&mut out, n);
            assert_eq!(out, format!("{n:x}\r\n").into_bytes());
        }
    }
}
