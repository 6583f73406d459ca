//! `azure_rows N`: N synthetic rows in the format of the Azure LLM traces, on stdout.

use std::io::{BufWriter, Write};
use tailbound_clock::Seed;

fn main() -> std::io::Result<()> {
    let n: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    out.write_all(b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n")?;
    let mut rng = Seed(1).stream("azure");
    // The first eight days of May 2024, in units of 100 ns.
    let mean_gap = 7.0 * 86_400.0 * 1e7 / n as f64;
    let mut at = 0u64;
    for _ in 0..n {
        at += (rng.gamma(0.5) * 2.0 * mean_gap) as u64;
        let (day, of_day) = (12 + at / 864_000_000_000, at % 864_000_000_000);
        let (second, fraction) = (of_day / 10_000_000, of_day % 10_000_000);
        let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
        let (input, output) = (1 + (rng.gamma(0.9) * 1300.0) as u64, 1 + (rng.gamma(1.1) * 190.0) as u64);
        write!(out, "2024-05-{day:02} {h:02}:{m:02}:{s:02}.{fraction:07},{input},{output}\r\n")?;
    }
    out.flush()
}
