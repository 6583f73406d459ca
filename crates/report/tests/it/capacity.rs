//! A search as programs and pages read it.

use tailbound_clock::{Seed, Time};
use tailbound_report::capacity::{About, Found};
use tailbound_stats::capacity::{Answer, End, Mark, Probe, Probed, Reason, Requirement, Spec, Unit};

/// A probe of 200 requests, of which `met` met what was asked.
fn probe(number: u32, load: f64, met: u64, invalid: Option<&str>) -> Probed {
    let mark = |i: u64| Mark {
        at: Time((i as f64 / load * 1e9) as u64),
        judged: 1,
        met: u32::from(i * 7 % 200 < met),
        ..Mark::default()
    };
    Probed {
        probe: Probe { number, load, requests: 200, settle: 0, whole: false, certifies: false },
        requests: 200,
        marks: (0..200).map(mark).collect(),
        end: End::Whole,
        open: true,
        in_flight: load / 4.0,
        kept_up: 0.98,
        invalid: invalid.map(str::to_owned),
    }
}

fn found() -> Found {
    let spec = Spec {
        requirements: vec![Requirement { name: "ttft:300".into(), share: 0.9 }],
        unit: Unit::Rate,
        first: 4.0,
        precision: 0.05,
        confidence: 0.95,
        budget: 1000,
        probe_requests: 200,
        expect: None,
        certify: false,
        burstiness: None,
        seed: Seed(1),
    };
    let probes = [
        probe(0, 4.0, 200, None),
        probe(1, 8.0, 190, None),
        probe(2, 16.0, 60, None),
        probe(3, 32.0, 199, Some("[sends_late] <b>sends</b> were late")),
    ];
    let answer = Answer {
        reason: Reason::Converged,
        unit: Unit::Rate,
        capacity: Some(9.0),
        low: Some(8.5),
        high: Some(9.6),
        confidence: 0.95,
        binding: Some(0),
        requests: 800,
        probes: 4,
        certified: None,
        expected: None,
    };
    let about = About {
        sentence: "The capacity is 9.00 requests/s.",
        model: "org/model",
        virtual_profile: None,
        hash: "abc",
        accelerators: Some(2),
    };
    Found::new(&about, &spec, &probes, &answer)
}

#[test]
fn what_a_file_holds_makes_the_same_page() {
    let found = found();
    let again: Found = serde_json::from_str(&found.json()).unwrap();
    assert_eq!(again, found);
    assert_eq!(again.page().html(), found.page().html());
    assert_eq!((found.curve.len(), found.curve[0].load, found.curve[40].load), (41, 4.0, 16.0));
    assert_eq!(found.per_accelerator.capacity, Some(4.5));
}

#[test]
fn an_invalid_probe_is_hollow_struck_out_and_told_with_its_reason() {
    let found = found();
    let html = found.page().html();
    assert!(html.contains("Probe 3 at 32 requests/s is INVALID and does not count: [sends_late] &lt;b&gt;sends"));
    assert_eq!(html.matches("<tr class=\"void\">").count(), 1);
    // In both plots, each drawn wide and narrow.
    assert_eq!(html.matches(" class=\"hollow\" ").count(), 4);
    assert_eq!(html.matches("probe 3 (INVALID)").count(), 2);
    assert!(html.contains("The capacity is 9.00 requests/s.") && html.contains("id=\"result\""));
}

#[test]
fn more_load_that_brings_less_is_said_and_an_invalid_probe_says_nothing_about_it() {
    let words = "More load brought less: good requests fell from 7.6/s at 8 requests/s offered to 4.8/s at 16.";
    let mut found = found();
    assert!(found.page().html().contains(words));
    found.probes[2].valid = false;
    assert!(!found.page().html().contains("More load brought less"));
}
