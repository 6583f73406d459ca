use crate::make;
use tailbound_report::text::{Colour, explanations, failures, own_report, report, vllm_report};

#[test]
fn a_plain_run() {
    insta::assert_snapshot!(report(&make::plain().run(), Colour::Off));
}

#[test]
fn a_run_with_everything() {
    insta::assert_snapshot!(report(&make::full().run(), Colour::Off));
}

#[test]
fn a_run_in_which_nothing_completed() {
    insta::assert_snapshot!(report(&make::nothing().run(), Colour::Off));
}

#[test]
fn what_the_figures_of_a_run_mean() {
    insta::assert_snapshot!(explanations(&make::full().run()));
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    for owned in [make::plain(), make::full(), make::nothing()] {
        let run = owned.run();
        for line in (own_report(&run, Colour::Off) + &explanations(&run)).lines() {
            assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        }
    }
}

/// The lines as vLLM 0.33's format strings give them: `{:<40} {:<10}`, padding included.
#[test]
fn vllms_lines_are_laid_out_to_the_byte() {
    let text = vllm_report(&make::full().run());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "============ Serving Benchmark Result ============");
    assert_eq!(lines[1], "Successful requests:                     35        ");
    assert_eq!(lines[4], "Request rate configured (RPS):           20.00     ");
    assert!(lines.contains(&"---------------Time to First Token----------------"));
    assert!(lines.contains(&"-----Time per Output Token (excl. 1st token)------"));
    assert!(lines.contains(&"------------------Probe Requests------------------"));
    assert!(lines.contains(&"  Position 3:                            30.00     "));
    assert_eq!(lines.last(), Some(&"=================================================="));
    assert!(
        lines
            .iter()
            .all(|l| l.chars().count() == 50 || l.chars().count() == 51 || *l == "Per-position acceptance (%):")
    );
}

#[test]
fn a_server_cannot_flood_or_paint_the_report() {
    let mut owned = make::nothing();
    let page = format!("\x1b[31m<html>{}", "x".repeat(5000));
    if let tailbound_record::End::Failed { detail, .. } = &mut owned.rows[0].end {
        *detail = page.into();
    }
    owned.summary = tailbound_stats::summarize(&owned.rows, &owned.facts);
    let text = failures(&owned.run());
    assert!(!text.contains('\x1b') && text.len() < 2000, "{}", text.len());
    assert!(!text.contains("Error 10:"));
}

#[test]
fn colour_is_only_what_was_asked_for() {
    let owned = make::full();
    assert!(own_report(&owned.run(), Colour::On).contains("\x1b[1;31mINVALID\x1b[0m"));
    assert!(!own_report(&owned.run(), Colour::Off).contains('\x1b'));
}
