use tailbound_route::*;
use tailbound_testdata as data;

#[test]
fn published_configurations_of_both_generations_load_unchanged() {
    let files =
        [data::list("gateways/epp-configs", ".yaml"), data::list("gateways/epp-configs-2026-08", ".yaml")].concat();
    for (name, text) in &files {
        let policy = Policy::from_yaml(text);
        assert!(policy.is_ok(), "{name}: {}", policy.unwrap_err());
    }
    assert!(files.is_empty() || files.len() >= 32, "{} files", files.len());
}

/// What a file is refused with.
fn complaint(body: &str) -> String {
    let head = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";
    Policy::from_yaml(&format!("{head}{body}")).expect_err(body).to_string()
}

const PROFILE: &str = "schedulingProfiles:\n- name: default\n  plugins:\n  - pluginRef: queue-scorer\n";

#[test]
fn what_is_wrong_is_named() {
    let unknown = complaint(&format!("plugins:\n- type: queue-scorer\n- type: quantum-scorer\n  name: q\n{PROFILE}"));
    assert_eq!(unknown, "plugin `q`: no plugin of type `quantum-scorer` is known");
    let undeclared = complaint(&format!("plugins: []\n{PROFILE}"));
    assert_eq!(undeclared, "profile `default`: refers to plugin `queue-scorer`, which isn't declared");
    let parameter = complaint(&format!("plugins:\n- type: queue-scorer\n  parameters: {{depth: 3}}\n{PROFILE}"));
    assert!(parameter.starts_with("plugin `queue-scorer`: parameters: unknown field `depth`"), "{parameter}");
    let twice = complaint(&format!("plugins:\n- type: queue-scorer\n- type: queue-scorer\n{PROFILE}"));
    assert_eq!(twice, "`plugins`: two are named `queue-scorer`");
    let gate = complaint(&format!("featureGates: [warp]\nplugins:\n- type: queue-scorer\n{PROFILE}"));
    assert_eq!(gate, "`featureGates`: no feature `warp` is known");
    let ttl = complaint(&format!(
        "featureGates: [flowControl]\nflowControl: {{defaultRequestTTL: soon}}\nplugins:\n- type: queue-scorer\n{PROFILE}"
    ));
    assert_eq!(ttl, "`flowControl`: `defaultRequestTTL` is `soon`, no duration");
    let kind = Policy::from_yaml("apiVersion: llm-d.ai/v1\nkind: Pod\n").unwrap_err().to_string();
    assert_eq!(kind, "`kind`: is `Pod`, not `EndpointPickerConfig`");
    assert!(Policy::from_yaml("plugins: [").unwrap_err().to_string().starts_with("endpoint picker config: "));
}

/// llm-d-router#2274: the published picker makes an approximate index here, and the declared one is never asked.
#[test]
fn a_scorer_that_could_read_two_indexes_must_say_which() {
    let plugins =
        "plugins:\n- type: precise-prefix-cache-producer\n- type: prefix-cache-scorer\n- type: queue-scorer\n";
    let text = complaint(&format!("{plugins}{PROFILE}"));
    assert_eq!(
        text,
        "plugin `prefix-cache-scorer`: doesn't say whether it reads `precise-prefix-cache-producer`: \
         set `prefixMatchInfoProducerName`"
    );
    let wrong = "plugins:\n- type: queue-scorer\n- type: prefix-cache-scorer\n  \
                 parameters: {prefixMatchInfoProducerName: nobody}\n";
    assert!(complaint(&format!("{wrong}{PROFILE}")).contains("no plugin of that name produces prefix matches"));
}

#[test]
fn what_is_left_to_the_driver_is_told() {
    let Some(text) = data::read("gateways/epp-configs-2026-08/epp-precise-prefix-cache-config.yaml") else { return };
    let policy = Policy::from_yaml(&text).unwrap();
    assert_eq!(
        policy.outside(),
        ["token-producer", "endpoint-notification-source", "metrics-data-source", "core-metrics-extractor"]
    );
    assert!(policy.wants_tokens());
}
