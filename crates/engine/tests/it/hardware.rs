//! The whole engine against measurements of real hardware.

use crate::driver::Driver;
use tailbound_clock::Time;
use tailbound_engine::{Config, Profile};
use tailbound_testdata as data;

/// Closed loop at a fixed concurrency: mean TTFT and TPOT in milliseconds once it is steady. The clients' first requests
/// are of different lengths, so that they don't go in step ever after, as clients of a real engine don't.
fn closed_loop(config: Config, input: u32, output: u32, concurrency: u64, requests: u64) -> (f64, f64) {
    let mut driver = Driver::new(config);
    driver.check = false;
    let mut sent = 0;
    let mut prompt: Vec<u32> = vec![0; input as usize];
    let mut send = |driver: &mut Driver, sent: &mut u64| {
        prompt[0] = *sent as u32; // no two share a prefix
        let first = u64::from(output) * (*sent + 1) / concurrency;
        driver.submit(*sent, &prompt, if *sent < concurrency { first as u32 } else { output });
        *sent += 1;
    };
    for _ in 0..concurrency {
        send(&mut driver, &mut sent);
    }
    let mut answered = 0;
    while driver.wake(Time::MAX) {
        while answered < driver.finished.len() as u64 && sent < requests {
            answered += 1;
            send(&mut driver, &mut sent);
        }
    }
    // The first wave starts together, the last runs out: neither is steady.
    let steady = driver.finished.values().filter(|f| f.id.0 >= 2 * concurrency && f.id.0 < requests - concurrency);
    let (mut ttft, mut tpot, mut n) = (0.0, 0.0, 0.0);
    for f in steady {
        let (first, last) = (f.first_token.expect("it ended"), f.last_token.expect("it ended"));
        ttft += first.since(f.queued).ms();
        tpot += last.since(first).ms() / f64::from(output - 1);
        n += 1.0;
    }
    (ttft / n, tpot / n)
}

/// 42 measured points of Llama-3.1-8B on one H100 (TensorRT-LLM, closed loop, 1,024–4,096 tokens in, 128–512 out).
#[test]
fn tpot_of_the_8b_model_on_h100_is_within_ten_percent() {
    let Some(text) = data::read("systems/profiles/aic_silicon_measured_ttft_tpot.csv") else { return };
    let mut errors = Vec::new();
    for line in text.lines().filter(|l| l.starts_with("meta-llama/Llama-3.1-8B-Instruct,h100_sxm,trtllm,")) {
        let field: Vec<&str> = line.split(',').collect();
        let number = |i: usize| field[i].parse::<f64>().unwrap();
        if number(9) != 1.0 {
            continue;
        }
        let (input, output, concurrency) = (number(5) as u32, number(6) as u32, number(8) as u64);
        let config = Profile::named("llama-3.1-8b-h100").unwrap().config();
        let (ttft, tpot) = closed_loop(config, input, output, concurrency, 5 * concurrency);
        println!("{input} {output} {concurrency}: ttft {ttft:.0} {} tpot {tpot:.2} {}", field[12], field[13]);
        errors.push(tpot / number(13) - 1.0);
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let p90 = sizes[sizes.len() * 9 / 10];
    println!(
        "TPOT: mean error {:.1} %, p90 |error| {:.1} %, worst {:.1} %",
        100.0 * mean,
        100.0 * p90,
        100.0 * sizes[sizes.len() - 1]
    );
    assert_eq!(errors.len(), 42);
    assert!(p90 < 0.10, "p90 {p90}");
}
