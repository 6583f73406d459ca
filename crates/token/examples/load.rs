//! How long a tokenizer takes to load and how fast it encodes, in CPU time of this process.
//! `cargo run --release -p tailbound-token --example load -- tokenizer.json`
use std::path::Path;
use tailbound_token::Tokenizer;

fn cpu_seconds() -> f64 {
    // utime + stime in clock ticks of 10 ms: fields 14 and 15 of /proc/self/stat.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields[11..13].iter().filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: load tokenizer.json")?;
    let rounds = 20;
    let start = cpu_seconds();
    for _ in 0..rounds {
        Tokenizer::load(Path::new(&path))?;
    }
    eprintln!("load: {:.0} ms of CPU time", (cpu_seconds() - start) * 1e3 / f64::from(rounds));

    let tokenizer = Tokenizer::load(Path::new(&path))?;
    let text = "The quick brown fox jumps over the lazy dog, 1234 times. ".repeat(100);
    let start = cpu_seconds();
    let mut tokens = 0u64;
    for _ in 0..200 {
        tokens += u64::from(tokenizer.count(&text, false)?);
    }
    let spent = cpu_seconds() - start;
    eprintln!("encode: {:.2} M tokens per CPU-second", tokens as f64 / spent / 1e6);
    Ok(())
}
