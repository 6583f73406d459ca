//! An emulator from the command line, for measuring it alone. Options are `name=value`; see the `match`.
//!
//! `cargo run --release -p tailbound-emulator --example emulate -- port=8000 step_us=7000 seqs=256 ranks=1 truth=/tmp/truth.jsonl`

use std::path::PathBuf;

use tailbound_clock::Dur;
use tailbound_emulator::{Config, Emulator};
use tailbound_engine::{Law, Speculation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut step, mut per_prompt_token, mut seqs, mut blocks) = (Dur::from_us(7000), Dur::ZERO, 256, 1 << 20);
    let mut drafts = 0;
    let mut config = Config::new(tailbound_engine::Config::new(Law::Constant { step, per_prefill_token: step }, 1, 1));
    for arg in std::env::args().skip(1) {
        let (name, value) = arg.split_once('=').ok_or(format!("{arg} is not name=value"))?;
        match name {
            "port" => config.listen.set_port(value.parse()?),
            "step_us" => step = Dur::from_us(value.parse()?),
            "prompt_ns" => per_prompt_token = Dur::from_ns(value.parse()?),
            "seqs" => seqs = value.parse()?,
            "blocks" => blocks = value.parse()?,
            "drafts" => drafts = value.parse()?,
            "ranks" => config.data_parallel_size = value.parse()?,
            "spin_us" => config.spin = Dur::from_us(value.parse()?),
            "answers" => config.answer_length = value.parse()?,
            "truth" => config.truth_log = Some(PathBuf::from(value)),
            "model" => config.served_model_names = vec![value.to_owned()],
            _ => return Err(format!("there is no option {name}").into()),
        }
    }
    config.engine = tailbound_engine::Config::new(
        Law::Constant { step, per_prefill_token: per_prompt_token },
        blocks,
        8192.min(blocks * 16),
    );
    config.engine.max_num_seqs = seqs;
    config.engine.max_num_batched_tokens = 8192.max(seqs);
    config.engine.speculation =
        (drafts > 0).then_some(Speculation { tokens: drafts, acceptance: 0.7, draft_time: Dur::ZERO });
    let emulator = Emulator::bind(config)?;
    eprintln!("listening on http://{}", emulator.addr());
    tailbound_os::signals::watch();
    let summary = emulator.run(|| tailbound_os::signals::interrupts() + tailbound_os::signals::terminates() > 0)?;
    eprintln!("{}", summary.to_json());
    Ok(())
}
