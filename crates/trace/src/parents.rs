//! Sessions of formats that name parents instead: told from the whole trace, so that the order of rows in the file does not matter.

use crate::hash::FixedMap;
use crate::row::{Name, Names, Row};

/// Gives every row with an id of its own the session of its oldest known ancestor; an ancestor that is named but not in the trace
/// stands for it. Of ancestors that follow each other in a circle, the one whose name sorts first.
pub(crate) fn join(rows: &mut [Row], names: &Names) {
    let link = |row: &Row| row.more.as_ref().and_then(|m| Some((m.id?, m.parent)));
    let parents: FixedMap<Name, Option<Name>> = rows.iter().filter_map(link).collect();
    let mut roots: FixedMap<Name, Name> = FixedMap::default();
    for &id in parents.keys() {
        let mut path = Vec::new();
        let mut at = id;
        let root = loop {
            if let Some(&root) = roots.get(&at) {
                break root;
            }
            if let Some(from) = path.iter().position(|n| *n == at) {
                let circle = &path[from..];
                break circle.iter().copied().min_by_key(|n| names.text(*n)).unwrap_or(at);
            }
            path.push(at);
            match parents.get(&at).copied().flatten() {
                Some(parent) => at = parent,
                None => break at,
            }
        };
        roots.extend(path.into_iter().map(|n| (n, root)));
    }
    for row in rows {
        if let Some((id, _)) = link(row) {
            row.session = roots.get(&id).copied().or(row.session);
        }
    }
}
