//! How long it takes to prepare random prompts: CPU time of this process by phase.
//! `cargo run --release -p tailbound-prompt --example prepare -- tokenizer.json 100000 1000`
use std::path::Path;
use tailbound_clock::Seed;
use tailbound_prompt::{Body, Counting, DataSet, Form, Options, Random, build};
use tailbound_token::Tokenizer;

fn cpu_seconds() -> f64 {
    // utime + stime in clock ticks of 10 ms: fields 14 and 15 of /proc/self/stat.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields[11..13].iter().filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn uptime() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split(' ').next().and_then(|s| s.parse().ok()).unwrap_or(0.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, count, len] = args.as_slice() else { return Err("usage: prepare tokenizer.json COUNT LENGTH".into()) };
    let (count, input_len) = (count.parse()?, len.parse()?);
    let start = cpu_seconds();
    let tokenizer = Tokenizer::load(Path::new(path))?;
    eprintln!("load the tokenizer: {:.2} s CPU", cpu_seconds() - start);
    for form in [Form::Text, Form::Ids] {
        let options = Options { form, ..Options::new(Some(count), Seed(0), Counting::Tokenizer(&tokenizer)) };
        let (cpu, wall) = (cpu_seconds(), uptime());
        let set = build(&DataSet::Random(Random { input_len, ..Random::default() }), &options)?;
        let (cpu, wall) = (cpu_seconds() - cpu, uptime() - wall);
        eprintln!(
            "{form:?}: {} prompts of {input_len} tokens: {cpu:.2} s CPU, {wall:.2} s wall {:?}",
            set.prompts.len(),
            set.notes
        );
        if form == Form::Text {
            let (mut off, mut checked) = (0, 0);
            for prompt in set.prompts.iter().step_by((set.prompts.len() / 500).max(1)) {
                let Body::Text(text) = &prompt.body else { continue };
                checked += 1;
                off += u32::from(Some(tokenizer.count(text, true)?) != prompt.prompt_tokens);
            }
            eprintln!("  encoded {checked} of them again: {off} off");
        }
    }
    Ok(())
}
