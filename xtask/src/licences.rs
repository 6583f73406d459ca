//! Licences of everything linked into the binary: each must offer at least one of these.

use crate::metadata::Metadata;

const ACCEPTED: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unlicense",
    "CC0-1.0",
    "Unicode-3.0",
    "BSL-1.0",
    "MPL-2.0",
    "CDLA-Permissive-2.0",
];

/// One line for each package without an accepted licence.
pub fn complaints(metadata: &Metadata) -> Vec<String> {
    let Some(root) = metadata.id_of("tailbound") else { return vec!["no package `tailbound`".into()] };
    let linked = metadata.closure(root);
    let packages = linked.iter().filter_map(|id| metadata.packages.get(id));
    packages.filter(|(_, licence)| !acceptable(licence)).map(|(name, l)| format!("{name}: licence `{l}`")).collect()
}

/// Every AND-part of the expression has an OR-alternative we accept. Enough for the flat expressions that crates use.
fn acceptable(expression: &str) -> bool {
    let flat = expression.replace('/', " OR ").replace(['(', ')'], "");
    flat.split(" AND ").all(|part| part.split(" OR ").any(|one| ACCEPTED.contains(&one.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_and_conjunctions_are_understood() {
        assert!(acceptable("MIT/Apache-2.0"));
        assert!(acceptable("Apache-2.0 AND ISC"));
        assert!(acceptable("GPL-3.0 OR MIT"));
        assert!(!acceptable("GPL-3.0"));
        assert!(!acceptable("MIT AND GPL-3.0"));
        assert!(!acceptable(""));
    }

    #[test]
    fn everything_linked_is_free_to_use() {
        let complaints = complaints(&Metadata::read().unwrap());
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
}
