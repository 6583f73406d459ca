//! ServeGen's lesson: a load of one length plans half of what the real one needs.

use crate::policy::path;
use tailbound_sim::{Goal, Scenario, at_size};

#[test]
fn a_uniform_load_plans_half_of_what_the_real_one_needs() {
    let Some(pool) = tailbound_testdata::folder("workloads/servegen/data/reason/deepseek-r1") else { return };
    let goal: Goal = "ttft_p99=2s".parse().unwrap();
    let mut real = Scenario::open(&path("servegen-r1.toml")).unwrap();
    real.traffic[0].servegen.as_mut().unwrap().pool = pool;
    let uniform = Scenario::open(&path("servegen-uniform.toml")).unwrap();
    let met = |scenario: &Scenario, count| at_size(scenario, &goal, 3, count).unwrap().value_ms <= goal.limit_ms;
    assert!(!met(&real, 19) && met(&real, 22), "20 to 22 are needed");
    assert!(!met(&uniform, 8) && met(&uniform, 11), "9 to 11 are planned");
    let planned = 10;
    let then = at_size(&real, &goal, 3, planned).unwrap();
    assert!(then.late > 0.25, "{then:?}");
}
