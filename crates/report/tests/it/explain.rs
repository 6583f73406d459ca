use crate::make;
use tailbound_report::explain::{all, of_line};
use tailbound_report::{explain, text};

#[test]
fn every_printed_figure_is_explained() {
    let owned = [make::plain(), make::full(), make::nothing()];
    for owned in &owned {
        let run = owned.run();
        let printed = text::vllm_report(&run) + &text::own_report(&run, text::Colour::Off);
        let mut table = false;
        for line in printed.lines() {
            // Titles, the head of the latency table, and sentences are not figures.
            table = if line.starts_with('-') { line.contains("Latency (ms)") } else { table };
            let figure = line.contains(":  ")
                || line.trim_end().ends_with(':')
                || (table && line.starts_with(char::is_alphabetic));
            if !figure || line.starts_with("    ") || line.starts_with("  caution:") || line.starts_with("  - ") {
                continue;
            }
            assert!(of_line(line).is_some(), "no explanation of: {line}");
        }
    }
}

#[test]
fn vllms_figures_are_not_mistaken_for_ours() {
    let of = |line| of_line(line).map(|e| e.keys);
    assert_eq!(of("Mean TPOT (ms):                          20.00"), Some(&["tpot_vllm"][..]));
    assert_eq!(of("TPOT                        20.00    20.50"), Some(&["tpot"][..]));
    assert_eq!(of("P99.9 ITL (ms):                          20.00"), Some(&["icl", "itl_vllm"][..]));
    assert_eq!(of("Median E2EL incl. Client Queue (ms):     20.00"), Some(&["e2el_including_client_queue"][..]));
    assert_eq!(of("Mean in flight:                          20.0"), Some(&["steady_concurrency"][..]));
    assert_eq!(of("P99 TTFT from arrival, 95 % interval:    1 to 2"), Some(&["interval"][..]));
}

#[test]
fn figures_are_found_by_key_and_by_label() {
    assert_eq!(explain("tpot"), explain("TPOT"));
    assert_ne!(explain("tpot"), explain("tpot_vllm"));
    assert_eq!(explain("Mean TTFT"), explain("ttft"));
    assert_eq!(explain("nonsense"), None);
    for metric in tailbound_stats::Metric::ALL {
        assert!(explain(metric.name()).is_some(), "{}", metric.name());
    }
    for metric in tailbound_report::Selected::ALL {
        assert!(explain(metric.name()).is_some(), "{}", metric.name());
    }
    let mut keys: Vec<&str> = all().iter().flat_map(|e| e.keys).copied().collect();
    let n = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), n, "a key has two explanations");
}
