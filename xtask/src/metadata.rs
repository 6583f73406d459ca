//! What `cargo metadata` says, and what follows from it.

use crate::arrows::{ALLOWED, IO_CRATES, PURE};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The packages of the build and what each is linked with (development dependencies left out).
pub struct Metadata {
    /// Package id → (name, licence).
    pub packages: BTreeMap<String, (String, String)>,
    edges: BTreeMap<String, Vec<String>>,
}

impl Metadata {
    /// Asks cargo.
    pub fn read() -> Result<Metadata, String> {
        let output = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["metadata", "--format-version=1", "--locked", "--manifest-path"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
            .output()
            .map_err(|e| format!("failed to run cargo metadata: {e}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let json: Value =
            serde_json::from_slice(&output.stdout).map_err(|e| format!("failed to read cargo metadata: {e}"))?;
        Ok(Metadata::parse(&json))
    }

    fn parse(json: &Value) -> Metadata {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let list = |v: &Value| v.as_array().cloned().unwrap_or_default();
        let packages =
            list(&json["packages"]).iter().map(|p| (text(&p["id"]), (text(&p["name"]), text(&p["license"])))).collect();
        let edges = list(&json["resolve"]["nodes"])
            .iter()
            .map(|node| {
                let linked = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|k| k["kind"].is_null());
                let deps = list(&node["deps"]);
                (text(&node["id"]), deps.iter().filter(linked).map(|d| text(&d["pkg"])).collect())
            })
            .collect();
        Metadata { packages, edges }
    }

    fn name(&self, id: &str) -> &str {
        self.packages.get(id).map_or("", |(name, _)| name)
    }

    /// Everything linked into the package, however deep.
    pub fn closure(&self, root: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut todo = vec![root.to_owned()];
        while let Some(id) = todo.pop() {
            for next in self.edges.get(&id).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    todo.push(next.clone());
                }
            }
        }
        seen
    }

    /// The id of the workspace package with this full name.
    pub fn id_of(&self, full_name: &str) -> Option<&str> {
        self.packages.iter().find(|(_, (name, _))| name == full_name).map(|(id, _)| id.as_str())
    }

    /// Every arrow that the table does not allow, and every pure crate that can reach I/O.
    pub fn arrow_complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        for (id, (full_name, _)) in &self.packages {
            let Some(name) = full_name.strip_prefix("tailbound-") else { continue };
            let Some((_, allowed)) = ALLOWED.iter().find(|(n, _)| *n == name) else {
                complaints.push(format!("`{name}` is not in the table of arrows (xtask/src/arrows.rs)"));
                continue;
            };
            for dep in self.edges.get(id).into_iter().flatten() {
                if let Some(dep) = self.name(dep).strip_prefix("tailbound-")
                    && !allowed.contains(&dep)
                {
                    complaints.push(format!("`{name}` may not depend on `{dep}`"));
                }
            }
            if PURE.contains(&name) {
                complaints.extend(self.reachable_io(name, id));
            }
        }
        complaints
    }

    fn reachable_io(&self, name: &str, id: &str) -> Vec<String> {
        let closure = self.closure(id);
        let reached = closure.iter().map(|dep| self.name(dep)).filter(|dep| IO_CRATES.contains(dep));
        // `tokenizers` draws in `rand` for training, which nothing here calls.
        let excused = |dep: &&str| !(name == "prompt" && *dep == "rand");
        reached.filter(excused).map(|dep| format!("`{name}` decides, so it may not reach `{dep}`")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn graph(edges: &[(&str, &str)]) -> Metadata {
        let names: BTreeSet<&str> = edges.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let packages: Vec<Value> = names.iter().map(|n| json!({"id": n, "name": n, "license": "MIT"})).collect();
        let nodes: Vec<Value> = names
            .iter()
            .map(|n| {
                let deps: Vec<Value> = edges
                    .iter()
                    .filter(|(from, _)| from == n)
                    .map(|(_, to)| json!({"pkg": to, "dep_kinds": [{"kind": null}]}))
                    .collect();
                json!({"id": n, "deps": deps})
            })
            .collect();
        Metadata::parse(&json!({"packages": packages, "resolve": {"nodes": nodes}}))
    }

    #[test]
    fn the_workspace_keeps_to_the_table() {
        let complaints = Metadata::read().unwrap().arrow_complaints();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    #[test]
    fn a_wrong_arrow_an_unknown_crate_and_reachable_io_are_named() {
        let bad = graph(&[
            ("tailbound-stats", "tailbound-client"),
            ("tailbound-engine", "x"),
            ("x", "tokio"),
            ("tailbound-utils", "x"),
        ]);
        let complaints = bad.arrow_complaints().join("\n");
        assert!(complaints.contains("`stats` may not depend on `client`"), "{complaints}");
        assert!(complaints.contains("`engine` decides, so it may not reach `tokio`"), "{complaints}");
        assert!(complaints.contains("`utils` is not in the table"), "{complaints}");
    }
}
